// Package report has the formats of reports: JSON, JUnit, CTRF and Markdown.
//
// A Reader reads the report of a job and turns its references into working links. A
// Format writes an Outcome, one job or the jobs of a batch. The request chooses the
// format by ?format= or by Accept. ai.go is the JSON of the analysis.
package report
