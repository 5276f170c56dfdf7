package report

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"humanqa/httpapi/wire"
)

// Format is one way to write reports down.
type Format struct {
	Name  string // its value of ?format=
	Title string // of its files, for people
	also  string // another value of ?format=
	// types are the media types that ask for it; it is sent as the first.
	types  []string
	ending string                        // of its files
	write  func(Outcome) ([]byte, error) // nil: JSON, as everything else
	// words says that a text may stand in the place of a link.
	words bool
}

// formats are in the order of preference among equals.
var formats = []Format{
	{Name: "json", types: []string{"application/json"}},
	{
		Name: "junit", Title: "JUnit XML", types: []string{"application/xml", "application/junit+xml"}, ending: "xml",
		write: writeJUnit, words: true,
	},
	{Name: "ctrf", Title: "CTRF JSON", types: []string{"application/vnd.ctrf+json"}, ending: "json", write: writeCTRF},
	{Name: "md", also: "markdown", Title: "Markdown", types: []string{"text/markdown"}, ending: "md", write: writeMarkdown, words: true},
}

// Formats lists every format.
func Formats() []Format { return slices.Clone(formats) }

// Files lists the formats of files that people keep: all but JSON.
func Files() []Format {
	return slices.DeleteFunc(Formats(), func(f Format) bool { return !f.isKept() })
}

// values are the values of ?format= that ask for the format.
func (f Format) values() []string {
	if f.also == "" {
		return []string{f.Name}
	}
	return []string{f.Name, f.also}
}

// Outcome is the subject of a report: one job, the jobs of a batch, or several jobs.
type Outcome struct {
	Title   string
	BatchID string // empty: of no batch
	Jobs    []Job
}

// single is the job whose report alone the document is; ok is false for several.
func (o Outcome) single() (t Job, ok bool) {
	if o.BatchID != "" || len(o.Jobs) != 1 || o.Jobs[0].Report == nil {
		return Job{}, false
	}
	return o.Jobs[0], true
}

// Asked is the format that the request asks for: ?format=, else Accept, else JSON.
func Asked(r *wire.Request, p *wire.Problems) Format {
	var all []string
	for _, f := range formats {
		all = append(all, f.values()...)
	}
	asked := r.Query(p).OneOf("format", all)
	for _, f := range formats {
		if slices.Contains(f.values(), asked) {
			return f
		}
	}
	return accepted(r.Header.Values("Accept"))
}

// accepted is the format that the client prefers. A client that accepts none of
// ours gets JSON: a report in another format is worth more than a 406. So does a browser:
// it takes any XML, but prefers a page.
func accepted(accept []string) Format {
	page := wire.Quality(accept, "text/html")
	best, most := formats[0], 0.0
	for _, f := range formats {
		if q := wire.Quality(accept, f.types...); q > most && q >= page {
			best, most = f, q
		}
	}
	return best
}

// isKept says that the report becomes a file that people keep: its links have to
// last. A program reads JSON at once.
func (f Format) isKept() bool { return f.write != nil }

// Answer writes the report down; body is its JSON.
func (f Format) Answer(body any, o Outcome) (wire.Answer, error) {
	header := http.Header{"Vary": {"Accept"}}
	if f.write == nil {
		ans, err := wire.Reply(http.StatusOK, body)
		ans.Header = header
		return ans, err
	}
	raw, err := f.write(o)
	if err != nil {
		return wire.Answer{}, fmt.Errorf("write the report as %s: %w", f.Name, err)
	}
	header.Set("Content-Type", f.mediaType())
	return wire.Answer{Status: http.StatusOK, Header: header, Body: raw}, nil
}

func (f Format) mediaType() string {
	if strings.HasSuffix(f.types[0], "json") {
		return f.types[0]
	}
	return f.types[0] + "; charset=utf-8"
}
