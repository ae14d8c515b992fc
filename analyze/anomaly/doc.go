// Package anomaly is the table of everything Weft can find wrong with a fabric:
// the anomalies, root causes and details of a diagnosis, and the causes of
// incidents. A row holds an entry's name, its texts, its severity, the sources
// that show it, what it explains and where the manual describes it. To add an
// anomaly, add its row here, the rule that finds it, and a paragraph in the
// manual; everything else reads the table.
//
// Finding anomalies is analyze/diagnose's work, joining evidence
// analyze/incident's. Manuals: docs/diagnosis.md, docs/incidents.md.
package anomaly
