package v1

import (
	"bufio"
	"cmp"
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"humanqa/domain"
	"humanqa/httpapi/wire"
	"humanqa/internal/tabular"
	"humanqa/projections/analytics"
	"humanqa/projections/events"
)

// streamPart is how much of a table is sent at a time.
const streamPart = 64 << 10

// tableTime bounds the time of a table, however slowly the client reads it.
const tableTime = 10 * time.Minute

// TableOf answers with rows as they come. It has a place until it ends. A client that
// reads too slowly is cut off, and so is a table that fails on the way, so that no client
// takes a part for the whole. With ?bom=1 CSV begins with the mark by which Excel knows UTF-8.
func (a *Handlers) TableOf(
	r *wire.Request, f tabular.Format, name string, columns []tabular.Column, rows tabular.Rows,
) (wire.Answer, error) {
	if err := f.Ready(); err != nil {
		return wire.Answer{}, domain.Unavailable(err).WithHint("this server has no program for the format: take another one")
	}
	var p wire.Problems
	marked := r.Query(&p).OneOf("bom", []string{"1"}) != "" && f == tabular.CSV
	if err := p.Err(); err != nil {
		return wire.Answer{}, err
	}
	leave, err := a.ExportQuota.Enter("exports", r.Caller.AccountID)
	if err != nil {
		return wire.Answer{}, err
	}
	return wire.Answer{
		Status: http.StatusOK,
		Header: http.Header{"Content-Type": {f.MediaType()},
			"Content-Disposition": {`attachment; filename="` + name + "." + string(f) + `"`}},
		Stream: func(ctx context.Context, s *wire.StreamWriter) {
			defer leave()
			ctx, cancel := context.WithTimeout(ctx, tableTime)
			defer cancel()
			s.Grace = a.ReadGrace
			out := bufio.NewWriterSize(s, streamPart)
			if marked {
				_, _ = out.WriteString("\ufeff") // an error stays until Flush
			}
			err := f.Write(ctx, out, columns, rows)
			if err == nil {
				err = out.Flush()
			}
			if err != nil {
				r.Log.WithError(err).Info("an export broke off")
				panic(http.ErrAbortHandler)
			}
		},
	}, nil
}

// exportRequest is a client's request for an export.
type exportRequest struct {
	analytics.Filter

	format tabular.Format
	at     *asked
}

// readExport reads an exportRequest. Rows without a time have no period.
func (a *Handlers) readExport(r *wire.Request, timed bool) (in exportRequest, err error) {
	var p wire.Problems
	q, after := r.Query(&p), ""
	in.AccountID = r.Caller.AccountID
	in.format = cmp.Or(tabular.Format(q.OneOf("format", tabular.Formats())), tabular.NDJSON)
	if timed {
		in.Since, in.Until, after = q.Time("since"), q.Time("until"), q.Text("after")
	}
	if !events.IsCursor(after) {
		p.Add("after", "must be a cursor of an earlier export, or of an event")
	}
	in.at, err = a.asOf(r, &p)
	if err := cmp.Or(p.Err(), err); err != nil {
		return in, err
	}
	if in.After, err = a.cursors.Place(r.Context(), after); err == nil && after != "" {
		err = a.Fresh.RequireFeed(r.Context()) // the feed knows what has changed since
	}
	return in, err
}

// getExport is GET /v1/exports/:table: the account's own rows of a view of
// schema analytics.
func (a *Handlers) getExport(r *wire.Request) (wire.Answer, error) {
	v, found := analytics.Find(r.Vars["table"])
	in, err := a.readExport(r, v.HasTime())
	switch {
	case err != nil:
		return wire.Answer{}, err
	case !found:
		return wire.Answer{}, analytics.ErrNoView(r.Vars["table"])
	}
	return a.TableOf(r, in.format, v.Name, v.Table(), func(ctx context.Context, each func([]any) error) error {
		return a.past.Export(ctx, v, in.Filter, in.at.place(), each)
	})
}

type passRatesBody struct {
	By     []string   `json:"by"`
	Groups []passRate `json:"groups"`
	AsOf   *string    `json:"asOf,omitempty"`
}

// passRate counts jobs; the rate is 0 to 1, as in lists.
type passRate struct {
	Week           *wire.Timestamp `json:"week,omitempty"`
	JobTypeCode    *string         `json:"jobTypeCode,omitempty"`
	ProjectID      *string         `json:"projectId,omitempty"`
	CompletedCount int             `json:"completedCount"`
	PassCount      int             `json:"passCount"`
	FailCount      int             `json:"failCount"`
	PassRate       float64         `json:"passRate"`
}

// getPassRates is GET /v1/analytics/pass-rate.
func (a *Handlers) getPassRates(r *wire.Request) (wire.Answer, error) {
	var p wire.Problems
	by := []string{}
	if text := r.Query(&p).Text("by"); text != "" {
		by = strings.Split(text, ",")
	}
	for i, dimension := range by {
		var known bool
		if by[i], known = wire.Among(analytics.Dimensions, dimension); !known || slices.Contains(by[:i], by[i]) {
			p.Add("by", "must be some of %s, each once, separated by commas", strings.Join(analytics.Dimensions, ", "))
			break
		}
	}
	at, err := a.asOf(r, &p)
	if err := cmp.Or(p.Err(), err); err != nil {
		return wire.Answer{}, err
	}
	rates, err := a.Reads.Analytics.PassRates(r.Context(), r.Caller.AccountID, r.Caller.ProjectID, by, at.place())
	out := passRatesBody{By: by, Groups: []passRate{}, AsOf: at.then()}
	for _, rate := range rates {
		g := passRate{CompletedCount: rate.Completed, PassCount: rate.Passed, FailCount: rate.Failed,
			PassRate: float64(rate.Passed) / float64(rate.Completed)}
		if slices.Contains(by, "week") {
			g.Week = wire.Stamp(rate.Week)
		}
		if slices.Contains(by, "jobType") {
			g.JobTypeCode = &rate.JobType
		}
		if slices.Contains(by, "project") {
			g.ProjectID = &rate.ProjectID
		}
		out.Groups = append(out.Groups, g)
	}
	return wire.ReplyUnless(err, http.StatusOK, out)
}
