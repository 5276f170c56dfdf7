package report

import (
	"context"
	"slices"

	"humanqa/domain"
	"humanqa/domain/announce"
	"humanqa/domain/job"
	"humanqa/domain/retention"
	"humanqa/httpapi/wire"
	"humanqa/projections/jobs"
)

// Links makes a link of a stored reference to evidence. Any other link stays as it
// is.
type Links interface {
	// Link gives one that works for minutes, for an answer that is read at once.
	Link(ctx context.Context, accountID, stored string) (string, error)
	// LastingLink gives one that does not expire, for a file that is kept.
	LastingLink(ctx context.Context, accountID, stored string) (string, error)
	// Gone lists the evidence of a job that is kept no longer.
	Gone(ctx context.Context, accountID, jobID string) ([]retention.Gone, error)
}

// Reader reads the reports of jobs.
type Reader struct {
	Jobs    *jobs.Reads
	Links   Links
	BaseURL string // of the page of a report
}

// Stored reads the job's report as it is stored; past, where it is given, is the
// job as it was.
func (s Reader) Stored(ctx context.Context, accountID, jobID string, past *jobs.Past) (jobs.Report, error) {
	if past != nil {
		return past.Report()
	}
	return s.Jobs.Report(ctx, accountID, jobID)
}

// Read reads the job's report for a format, as it was where past is given.
func (s Reader) Read(ctx context.Context, accountID string, j jobs.Outline, past *jobs.Past, format Format) (Job, error) {
	out := s.Unreported(j)
	stored, err := s.Stored(ctx, accountID, j.ID, past)
	if err != nil {
		return out, err
	}
	link := s.Links.Link
	if format.isKept() {
		link = s.Links.LastingLink
	}
	out.Report = &stored
	if format.isKept() {
		withDisputes(&stored)
	}
	if out.Gone, err = s.Links.Gone(ctx, accountID, j.ID); err != nil {
		return out, err
	}
	return out, linkReport(&stored, func(stored string) (string, error) {
		if format.words {
			for _, g := range out.Gone {
				if g.Reference == stored {
					return g.Words(), nil
				}
			}
		}
		return link(ctx, accountID, stored)
	})
}

// Joined answers with the reports of jobs that have ended, as one document about shown. past are
// the jobs as they were at the moment asOf; without one, each is nil.
func (s Reader) Joined(
	r *wire.Request, shown Outcome, ended []jobs.Outline, past []*jobs.Past, asOf *string, format Format,
) (wire.Answer, error) {
	out := Joined{BatchID: shown.BatchID, Reports: []Body{}, AsOf: asOf}
	if shown.BatchID != "" {
		out.WithoutReport = []Unreported{}
	}
	for i, j := range ended {
		tested := s.Unreported(j)
		if j.ReportID == "" {
			out.WithoutReport = append(out.WithoutReport, Unreported{JobID: j.ID, Status: j.Status})
		} else {
			var err error
			if tested, err = s.Read(r.Context(), r.Caller.AccountID, j, past[i], format); err != nil {
				return wire.Answer{}, err
			}
			out.Reports = append(out.Reports, tested.JSON())
		}
		shown.Jobs = append(shown.Jobs, tested)
	}
	return format.Answer(out, shown)
}

// Unreported is a job that ended without a report.
func (s Reader) Unreported(j jobs.Outline) Job {
	return Job{Outline: j, Page: announce.ReportPage(s.BaseURL, j.ID)}
}

// File is a report that people keep.
type File struct {
	Name, Type string
	Content    []byte
}

// File writes the job's report in the format of that name; JSON is no file.
func (s Reader) File(ctx context.Context, accountID string, j jobs.Job, format string) (File, error) {
	files := Files()
	i := slices.IndexFunc(files, func(f Format) bool { return f.Name == format })
	if i < 0 {
		return File{}, domain.NotFound("report")
	}
	read, err := s.Read(ctx, accountID, j.Outline, nil, files[i])
	if err != nil {
		return File{}, err
	}
	content, err := files[i].write(Outcome{Title: j.Title, Jobs: []Job{read}})
	return File{Name: "report-" + j.ID + "." + files[i].ending, Type: files[i].mediaType(), Content: content}, err
}

// linkReport makes the report's references links that work.
func linkReport(report *jobs.Report, link func(stored string) (string, error)) (err error) {
	if report.RecordingURL, err = link(report.RecordingURL); err != nil {
		return err
	}
	for i := range report.Recordings {
		if report.Recordings[i].URL, err = link(report.Recordings[i].URL); err != nil {
			return err
		}
	}
	for i := range report.Items {
		if err := LinkItem(&report.Items[i], link); err != nil {
			return err
		}
	}
	return nil
}

// LinkItem makes the references of an item of a report links that work.
func LinkItem(item *job.ReportItem, link func(stored string) (string, error)) (err error) {
	if item.ScreenshotURL, err = link(item.ScreenshotURL); err != nil {
		return err
	}
	more := make([]string, len(item.MoreScreenshotURLs)) // the item's own list belongs to the caller
	for i, stored := range item.MoreScreenshotURLs {
		if more[i], err = link(stored); err != nil {
			return err
		}
	}
	if len(more) > 0 {
		item.MoreScreenshotURLs = more
	}
	return nil
}
