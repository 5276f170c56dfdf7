package httpapi

import (
	"bufio"
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"humanqa/domain"
	"humanqa/internal/tabular"
	"humanqa/projections/analytics"
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

// table answers with rows as they come. What fails on the way cuts the
// connection off, so that nobody takes half for whole.
func (r *request) table(f tabular.Format, name string, columns []tabular.Column, rows func(context.Context, func([]any) error) error) answer {
	return answer{
		status: http.StatusOK,
		header: http.Header{"Content-Type": {f.MediaType()}, "Content-Disposition": {`attachment; filename="` + name + "." + string(f) + `"`}},
		stream: func(ctx context.Context, s *streamWriter) {
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
	}
}

const (
	// everyExport is what all exports of this node have their places under.
	everyExport = "exports"
	// exportTime bounds an export, whoever reads it how slowly.
	exportTime = 10 * time.Minute
)

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
	if err := p.err(); err != nil {
		return answer{}, err
	}
	if format == "" {
		format = tabular.NDJSON
	}
	v, found := analytics.Find(r.vars["table"])
	if !found {
		return answer{}, analytics.ErrNoView(r.vars["table"])
	}
	// Each has a connection to Postgres for as long as its client takes to read.
	leave, err := a.streams.take(everyExport)
	if err != nil {
		return answer{}, retryAfter(&domain.Error{
			Kind: domain.KindRateLimited, Code: domain.CodeRateLimited,
			Message: "too many exports are under way", Hint: "send the same request again in a moment",
		}, streamRetry)
	}
	return r.table(format, v.Name, v.Table(), func(ctx context.Context, each func([]any) error) error {
		defer leave()
		ctx, cancel := context.WithTimeout(ctx, exportTime)
		defer cancel()
		return a.reads.Analytics.Each(ctx, v, analytics.Filter{AccountID: r.caller.accountID, Since: since}, each)
	}), nil
}

type passRatesBody struct {
	By     []string   `json:"by"`
	Groups []passRate `json:"groups"`
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
	if err := p.err(); err != nil {
		return answer{}, err
	}
	rates, err := a.reads.Analytics.PassRates(r.Context(), r.caller.accountID, r.caller.projectID, by)
	if err != nil {
		return answer{}, err
	}
	out := passRatesBody{By: by, Groups: []passRate{}}
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
