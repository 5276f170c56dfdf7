package httpapi

import (
	"fmt"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"humanqa/domain/job"
)

// reportFormat is one way to write reports down.
type reportFormat struct {
	// names are what ?format= calls it.
	names []string
	// types are the media types that ask for it; it is sent as the first.
	types []string
	write func(outcome) ([]byte, error) // nil: JSON, as everything else
}

// reportFormats are in the order of preference among equals.
var reportFormats = []reportFormat{
	{names: []string{"json"}, types: []string{"application/json"}},
	{names: []string{"junit"}, types: []string{"application/xml", "application/junit+xml"}, write: writeJUnit},
	{names: []string{"ctrf"}, types: []string{"application/vnd.ctrf+json"}, write: writeCTRF},
	{names: []string{"md", "markdown"}, types: []string{"text/markdown"}, write: writeMarkdown},
}

// outcome is what a report tells of: one job, or those of a batch.
type outcome struct {
	title   string
	batchID string // empty: of one job
	jobs    []testedJob
}

// reportFormatOf is what the request asks for: ?format=, else Accept, else
// JSON.
func reportFormatOf(r *request, p *problems) reportFormat {
	var names []string
	for _, f := range reportFormats {
		names = append(names, f.names...)
	}
	name := r.query(p).oneOf("format", names)
	for _, f := range reportFormats {
		if slices.Contains(f.names, name) {
			return f
		}
	}
	return accepted(r.Header.Values("Accept"))
}

// accepted is the format the client likes best. Who likes none of ours gets
// JSON: a report nobody asked for in that shape is worth more than a 406.
func accepted(accept []string) reportFormat {
	best, most := reportFormats[0], 0.0
	for _, f := range reportFormats {
		if q := f.quality(accept); q > most {
			best, most = f, q
		}
	}
	return best
}

// quality is the weight of the most specific range that covers the format (RFC
// 9110, section 12.5.1).
func (f reportFormat) quality(accept []string) float64 {
	best, specific := 0.0, -1
	for one := range strings.SplitSeq(strings.Join(accept, ","), ",") {
		media, params, err := mime.ParseMediaType(one)
		if err != nil {
			continue
		}
		q := 1.0
		if s, there := params["q"]; there {
			if q, err = strconv.ParseFloat(s, 64); err != nil {
				continue
			}
		}
		for _, t := range f.types {
			if n := covers(media, t); n > specific || n == specific && n >= 0 && q > best {
				best, specific = q, n
			}
		}
	}
	return best
}

// covers says how specifically a media range names a type; -1: not at all.
func covers(media, t string) int {
	whole, _, _ := strings.Cut(t, "/")
	switch media {
	case t:
		return 2
	case whole + "/*":
		return 1
	case "*/*":
		return 0
	}
	return -1
}

// kept says that the report is for a file of somebody's, not for a program that
// reads it at once: its links have to last.
func (f reportFormat) kept() bool { return f.write != nil }

// answer writes the report down; body is its JSON.
func (f reportFormat) answer(body any, o outcome) (answer, error) {
	header := http.Header{"Vary": {"Accept"}}
	if f.write == nil {
		ans, err := reply(http.StatusOK, body)
		ans.header = header
		return ans, err
	}
	raw, err := f.write(o)
	if err != nil {
		return answer{}, fmt.Errorf("write the report as %s: %w", f.names[0], err)
	}
	header.Set("Content-Type", f.types[0]+"; charset=utf-8")
	return answer{status: http.StatusOK, header: header, body: raw}, nil
}

// reason says in words why a job has no report.
func (t testedJob) reason() string {
	switch {
	case t.CancelReason != "":
		return fmt.Sprintf("the job was cancelled (%s)", t.CancelReason)
	case t.FailReason != "":
		return fmt.Sprintf("the job failed (%s)", t.FailReason)
	}
	return fmt.Sprintf("the job is %s", t.Status)
}

// span is when the test began and ended, as far as that is known.
func (t testedJob) span() (from, to time.Time) {
	from = t.CreatedAt
	if t.ClaimedAt != nil {
		from = *t.ClaimedAt
	}
	to = from
	for _, at := range []*time.Time{t.CompletedAt, t.CancelledAt, t.FailedAt} {
		if at != nil {
			to = *at
		}
	}
	return from, to
}

// verdict is the checker's word on an item that did not pass, in one line.
func verdict(i job.ReportItem) string {
	switch {
	case i.Note != "":
		return i.Note
	case i.Reason != "":
		return i.Reason
	}
	return i.Description
}
