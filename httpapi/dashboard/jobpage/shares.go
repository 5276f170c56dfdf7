package jobpage

import (
	"context"
	"strconv"
	"time"

	"github.com/google/uuid"

	"humanqa/domain"
	"humanqa/domain/job"
	"humanqa/httpapi/admit"
	"humanqa/httpapi/ui"
	"humanqa/httpapi/wire"
	"humanqa/internal/credential"
	"humanqa/projections/jobs"
)

func (d Deps) lookAtShares(ctx context.Context, v *jobView) (err error) {
	if v.Shares, err = d.Credentials.Shares(ctx, v.AccountID, v.ID); err != nil {
		return err
	}
	ids := wire.List(v.Shares, func(s credential.Share) string { return s.PersonID })
	v.SharedBy, err = d.Credentials.Names(ctx, ids...)
	return err
}

// share makes a link to the report. It answers with the page itself: the link
// is on it, and nowhere else.
func (d Deps) share(r *ui.Request, j jobs.Job) (ui.Answer, error) {
	days, wrong := strconv.Atoi(r.PostFormValue("days"))
	j, err := admit.AtHead(r.Context(), d.Fresh, func() (jobs.Job, error) {
		return d.Reads.Jobs.Job(r.Context(), j.AccountID, j.ID)
	}, func(j jobs.Job, _ error) bool { return j.Status != job.StatusCompleted })
	switch {
	case err != nil:
		return ui.Answer{}, err
	case j.Status != job.StatusCompleted:
		return ui.Answer{}, domain.Conflict("there is no report to share yet")
	case wrong != nil || days < 1 || days > 30:
		return ui.Answer{}, domain.Invalid(domain.Detail{Path: "days", Message: "must be 1 to 30"})
	}
	token, err := d.Credentials.Share(r.Context(), j.AccountID, j.ID, r.Person.ID, time.Duration(days)*24*time.Hour)
	if err != nil {
		return ui.Answer{}, err
	}
	v, err := d.jobPage(r)
	v.NewShare = r.Origin() + "/shared/" + token
	return ui.Answer{Template: "job", Title: v.Title, View: v, Secret: true}, err
}

func (d Deps) endShare(r *ui.Request, j jobs.Job) (ui.Answer, error) {
	id, err := uuid.Parse(r.PostFormValue("share"))
	if err != nil {
		return ui.Answer{}, domain.NotFound("link")
	}
	err = d.Credentials.EndShare(r.Context(), j.AccountID, j.ID, id)
	return ui.Go("/dashboard/jobs/" + j.ID + "#share"), err
}

// sharedJob is the test that the path's link opens.
func (d Deps) sharedJob(r *ui.Request) (jobs.Job, error) {
	s, err := d.Credentials.Shared(r.Context(), r.PathValue("token"))
	if err != nil {
		return jobs.Job{}, err
	}
	j, err := d.Reads.Jobs.Job(r.Context(), s.AccountID, s.JobID)
	if domain.IsKind(err, domain.KindNotFound) {
		return jobs.Job{}, credential.ErrNoShare
	}
	return j, err
}

// shared shows only the report to a holder of the link: not its cost, the client's request,
// the account, or the recordings.
func (d Deps) shared(r *ui.Request, j jobs.Job) (ui.Answer, error) {
	v, err := d.jobView(r.Context(), j, "/shared/"+r.PathValue("token"))
	v.Shared, v.Recording = true, nil
	return ui.Answer{Template: "job", Title: j.Title, View: v, Secret: true, Bare: true}, err
}

// sharedPicture serves a picture of the report itself: a signed link to it would outlast
// the link to the report.
func (d Deps) sharedPicture(r *ui.Request, j jobs.Job) (ui.Answer, error) {
	shown, _, err := d.pictures(r.Context(), j)
	if err != nil {
		return ui.Answer{}, err
	}
	stored, err := asked(r, shown)
	if err != nil {
		return ui.Answer{}, err
	}
	file, err := d.Evidence.Picture(r.Context(), j.AccountID, stored)
	return ui.Answer{Serve: file}, err
}
