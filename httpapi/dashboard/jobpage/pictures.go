package jobpage

import (
	"context"

	"humanqa/domain"
	"humanqa/domain/job"
	"humanqa/domain/retention"
	"humanqa/httpapi/evidence"
	"humanqa/httpapi/ui"
	"humanqa/projections/jobs"
)

// shot is a picture or a recording. A piece that this service keeps is shown; any other
// one is a link, because a page fetches nothing from elsewhere.
type shot struct {
	Ours bool
	Href string
	Gone *retention.Gone // it is kept no longer; nil: it is there
}

// goneOf are the test's pieces of evidence that are kept no longer, by their reference in
// events.
func (d Deps) goneOf(ctx context.Context, j jobs.Job) (map[string]*retention.Gone, error) {
	list, err := d.Evidence.Gone(ctx, j.AccountID, j.ID)
	gone := make(map[string]*retention.Gone, len(list))
	for i := range list {
		gone[list[i].Reference] = &list[i]
	}
	return gone, err
}

func shotOf(base, stored string, gone map[string]*retention.Gone) *shot {
	if stored == "" {
		return nil
	}
	if g := gone[stored]; g != nil {
		return &shot{Ours: true, Gone: g}
	}
	if id := evidence.ID(stored); id != "" {
		return &shot{Ours: true, Href: base + "/evidence/" + id}
	}
	if link := ui.SafeLink(stored); link != "" {
		return &shot{Href: link}
	}
	return nil
}

func shotsOf(base string, i job.ReportItem, gone map[string]*retention.Gone) (shots []*shot) {
	for _, stored := range i.Screenshots() {
		if s := shotOf(base, stored, gone); s != nil {
			shots = append(shots, s)
		}
	}
	return shots
}

// evidenceOf leads to a picture or a recording of the test, and to nothing else.
func (d Deps) evidenceOf(r *ui.Request, j jobs.Job) (ui.Answer, error) {
	shown, report, err := d.pictures(r.Context(), j)
	if err != nil {
		return ui.Answer{}, err
	}
	stored, err := asked(r, append(shown, report.RecordingURL))
	if err != nil {
		return ui.Answer{}, err
	}
	path, _, err := d.Evidence.Path(r.Context(), j.AccountID, stored)
	return ui.Answer{Redirect: path}, err
}

// pictures are those of the test's items, as they are stored. The report is empty until
// there is one.
func (d Deps) pictures(ctx context.Context, j jobs.Job) (shown []string, report jobs.Report, err error) {
	for _, i := range j.Items {
		shown = append(shown, i.Screenshots()...)
	}
	if j.Status == job.StatusCompleted {
		report, err = d.Reads.Jobs.Report(ctx, j.AccountID, j.ID)
		for _, i := range report.Items {
			shown = append(shown, i.Screenshots()...)
		}
	}
	return shown, report, err
}

// asked finds the piece of evidence that the path names among those that are shown.
func asked(r *ui.Request, shown []string) (stored string, err error) {
	for _, stored := range shown {
		if id := evidence.ID(stored); id != "" && id == r.PathValue("evidence") {
			return stored, nil
		}
	}
	return "", domain.NotFound("evidence")
}
