// uPlot with its styles, as one piece that is loaded when the first chart is.
import 'uplot/dist/uPlot.min.css';
export { default } from 'uplot';
