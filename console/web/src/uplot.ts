// uPlot with its styles, as one chunk that is loaded with the first chart.
import 'uplot/dist/uPlot.min.css';
export { default } from 'uplot';
