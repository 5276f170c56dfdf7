package httpapi

import (
	"bufio"
	"cmp"
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"humanqa/internal/tabular"
	"humanqa/projections/analytics"
	"humanqa/projections/events"
)

// streamed makes an io.Writer of a stream.
type streamed struct{ *streamWriter }

func (s streamed) Write(part []byte) (int, error) {
	if err := s.write(part); err != nil {
		return 0, err
	}
	return len(part), nil
}

// streamPart is how much of a table is sent at a time.
const streamPart = 64 << 10

// tableTime bounds a table, whoever reads it how slowly.
const tableTime = 10 * time.Minute

// tableOf answers with rows as they come. It has a place until it ends, and who
// reads it too slowly to the end is cut off, as is what fails on the way: nobody
// takes half for whole.
func (a *API) tableOf(r *request, f tabular.Format, name string, columns []tabular.Column, rows func(context.Context, func([]any) error) error) (answer, error) {
	leave, err := takePlace(a.tablePlaces, "exports", r.caller.accountID)
	if err != nil {
		return answer{}, err
	}
	return answer{
		status: http.StatusOK,
		header: http.Header{"Content-Type": {f.MediaType()}, "Content-Disposition": {`attachment; filename="` + name + "." + string(f) + `"`}},
		stream: func(ctx context.Context, s *streamWriter) {
			defer leave()
			ctx, cancel := context.WithTimeout(ctx, tableTime)
			defer cancel()
			s.grace = a.readGrace
			out := bufio.NewWriterSize(streamed{s}, streamPart)
			w, err := tabular.New(f, out, columns)
			if err == nil {
				err = rows(ctx, w.Write)
			}
			if err == nil {
				err = w.Close()
			}
			if err == nil {
				err = out.Flush()
			}
			if err != nil {
				r.log.WithError(err).Info("an export broke off")
				panic(http.ErrAbortHandler)
			}
		},
	}, nil
}

// getExport is GET /v1/exports/:table: the account's own rows of a view of
// schema analytics.
func (a *API) getExport(r *request) (answer, error) {
	if r.caller.projectID != "" {
		return answer{}, errOtherProject // it tells of every project
	}
	var p problems
	q := r.query(&p)
	format := tabular.Format(q.oneOf("format", tabular.Formats()))
	since := q.time("since")
	at, err := a.asOf(r, &p)
	if err := cmp.Or(p.err(), err); err != nil {
		return answer{}, err
	}
	if format == "" {
		format = tabular.NDJSON
	}
	v, found := analytics.Find(r.vars["table"])
	if !found {
		return answer{}, analytics.ErrNoView(r.vars["table"])
	}
	f := analytics.Filter{AccountID: r.caller.accountID, Since: since}
	return a.tableOf(r, format, v.Name, v.Table(), func(ctx context.Context, each func([]any) error) error {
		if at != nil {
			return a.past.Export(ctx, v, f, at.Until, each)
		}
		return a.reads.Analytics.Each(ctx, v, f, each)
	})
}

type passRatesBody struct {
	By     []string   `json:"by"`
	Groups []passRate `json:"groups"`
	AsOf   *string    `json:"asOf,omitempty"`
}

// passRate counts jobs; the rate is 0 to 1, as in lists.
type passRate struct {
	Week           *timestamp `json:"week,omitempty"`
	JobTypeCode    *string    `json:"jobTypeCode,omitempty"`
	ProjectID      *string    `json:"projectId,omitempty"`
	CompletedCount int        `json:"completedCount"`
	PassCount      int        `json:"passCount"`
	FailCount      int        `json:"failCount"`
	PassRate       float64    `json:"passRate"`
}

// getPassRates is GET /v1/analytics/pass-rate.
func (a *API) getPassRates(r *request) (answer, error) {
	var p problems
	by := []string{}
	if text := r.query(&p).text("by"); text != "" {
		by = strings.Split(text, ",")
	}
	for i, dimension := range by {
		if !slices.Contains(analytics.Dimensions, dimension) || slices.Contains(by[:i], dimension) {
			p.add("by", "must be some of %s, each once, separated by commas", strings.Join(analytics.Dimensions, ", "))
			break
		}
	}
	at, err := a.asOf(r, &p)
	if err := cmp.Or(p.err(), err); err != nil {
		return answer{}, err
	}
	var until *events.Until
	if at != nil {
		until = &at.Until
	}
	rates, err := a.reads.Analytics.PassRates(r.Context(), r.caller.accountID, r.caller.projectID, by, until)
	if err != nil {
		return answer{}, err
	}
	out := passRatesBody{By: by, Groups: []passRate{}, AsOf: at.then()}
	for _, rate := range rates {
		g := passRate{CompletedCount: rate.Completed, PassCount: rate.Passed, FailCount: rate.Failed, PassRate: float64(rate.Passed) / float64(rate.Completed)}
		if slices.Contains(by, "week") {
			g.Week = stamp(rate.Week)
		}
		if slices.Contains(by, "jobType") {
			g.JobTypeCode = &rate.JobType
		}
		if slices.Contains(by, "project") {
			g.ProjectID = &rate.ProjectID
		}
		out.Groups = append(out.Groups, g)
	}
	return reply(http.StatusOK, out)
}
