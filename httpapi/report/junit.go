package report

import (
	"encoding/xml"
	"strconv"
	"strings"
	"time"

	"humanqa/domain/job"
	"humanqa/httpapi/wire"
)

// The JUnit form has a suite for each job and a case for each item. encoding/xml escapes
// texts and puts U+FFFD where XML has no way to write a character. No two cases of a document
// share class and name.

type junitSuites struct {
	XMLName  xml.Name     `xml:"testsuites"`
	Name     string       `xml:"name,attr"`
	Tests    int          `xml:"tests,attr"`
	Failures int          `xml:"failures,attr"`
	Errors   int          `xml:"errors,attr"`
	Skipped  int          `xml:"skipped,attr"`
	Time     string       `xml:"time,attr"`
	Suites   []junitSuite `xml:"testsuite"`
}

type junitSuite struct {
	Name       string          `xml:"name,attr"`
	ID         string          `xml:"id,attr"`
	Tests      int             `xml:"tests,attr"`
	Failures   int             `xml:"failures,attr"`
	Errors     int             `xml:"errors,attr"`
	Skipped    int             `xml:"skipped,attr"`
	Timestamp  string          `xml:"timestamp,attr"`
	Time       string          `xml:"time,attr"`
	Properties []junitProperty `xml:"properties>property"`
	Cases      []junitCase     `xml:"testcase"`
	Output     string          `xml:"system-out,omitempty"`
}

type junitProperty struct {
	Name  string `xml:"name,attr"`
	Value string `xml:"value,attr"`
}

type junitCase struct {
	Name       string           `xml:"name,attr"`
	ClassName  string           `xml:"classname,attr"`
	Time       string           `xml:"time,attr"`
	Properties *junitProperties `xml:"properties,omitempty"`
	Failure    *junitProblem    `xml:"failure,omitempty"`
	Error      *junitProblem    `xml:"error,omitempty"`
	Skipped    *junitProblem    `xml:"skipped,omitempty"`
}

type junitProperties struct {
	Properties []junitProperty `xml:"property"`
}

type junitProblem struct {
	Message string `xml:"message,attr"`
	Type    string `xml:"type,attr,omitempty"`
	Text    string `xml:",chardata"`
}

func writeJUnit(o Outcome) ([]byte, error) {
	all := junitSuites{Name: o.Title}
	var took time.Duration
	named := classes(o.Jobs)
	for i, t := range o.Jobs {
		s := junitOf(t, named[i], o.BatchID)
		all.Tests += s.Tests
		all.Failures += s.Failures
		all.Errors += s.Errors
		all.Skipped += s.Skipped
		all.Suites = append(all.Suites, s)
		from, to := t.span()
		took += to.Sub(from)
	}
	all.Time = seconds(took)
	raw, err := xml.MarshalIndent(all, "", "  ")
	if err != nil {
		return nil, err
	}
	return append([]byte(xml.Header), append(raw, '\n')...), nil
}

func junitOf(t Job, class, batchID string) junitSuite {
	from, to := t.span()
	s := junitSuite{
		Name: class, ID: t.ID, Timestamp: from.UTC().Format("2006-01-02T15:04:05"), Time: seconds(to.Sub(from)),
	}
	for _, p := range []junitProperty{
		{"jobId", t.ID}, {"batchId", batchID}, {"projectId", t.ProjectID}, {"url", t.URL}, {"jobType", string(t.Type)},
		{"priority", wire.Priority(t.Urgent)}, {"status", string(t.Status)}, {"reportId", t.ReportID},
		{"overallStatus", t.OverallStatus},
	} {
		if p.Value != "" {
			s.Properties = append(s.Properties, p)
		}
	}
	if t.Report == nil {
		s.Tests, s.Errors = 1, 1
		s.Cases = []junitCase{{
			Name: t.Title, ClassName: class, Time: "0.000",
			Error: &junitProblem{Message: t.reason(), Type: string(t.Status)},
		}}
		return s
	}
	s.Tests, s.Failures, s.Skipped = len(t.Report.Items), t.Report.FailCount, t.Report.SkipCount
	s.Output = t.Report.Summary
	given := names{}
	for _, i := range t.Report.Items {
		s.Cases = append(s.Cases, junitCaseOf(class, given.unique(i.Description), i))
	}
	return s
}

func junitCaseOf(class, name string, i job.ReportItem) junitCase {
	c := junitCase{
		Name: name, ClassName: class, Time: "0.000",
		Properties: &junitProperties{Properties: []junitProperty{{"key", i.Key}, {"severity", string(i.Severity)}}},
	}
	switch i.Status {
	case job.ItemFail:
		c.Failure = &junitProblem{Message: verdict(i), Type: string(i.Severity), Text: failureDetails(i)}
	case job.ItemSkip:
		c.Skipped = &junitProblem{Message: i.Reason, Text: i.Note}
	case job.ItemPass, job.ItemPending: // a report has no pending items
	}
	return c
}

// failureDetails lists the known facts of a failure, one a line.
func failureDetails(i job.ReportItem) string {
	var lines []string
	for _, l := range []struct{ name, value string }{
		{"Severity", string(i.Severity)}, {"Expected", i.ExpectedOutcome}, {"Note", i.Note},
	} {
		if l.value != "" {
			lines = append(lines, l.name+": "+l.value)
		}
	}
	for _, shown := range i.Screenshots() {
		lines = append(lines, "Screenshot: "+shown)
	}
	return strings.Join(lines, "\n")
}

func seconds(d time.Duration) string { return strconv.FormatFloat(d.Seconds(), 'f', 3, 64) }
