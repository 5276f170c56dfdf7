package workbench

import (
	"strconv"
	"time"

	"humanqa/domain"
	"humanqa/httpapi/input"
	"humanqa/httpapi/ui"
)

// Recordings are for the page's script alone (assets/src/uploads.ts): the routes of
// /v1/checker/jobs/:id/recordings, for a browser.

func (d Deps) beginRecording(r *ui.Request) (ui.Answer, error) {
	ago, err := agoOf(r, "must be how long ago it began")
	if err != nil {
		return ui.Answer{}, err
	}
	out, err := d.Evidence.BeginRecording(r.Context(), r.Cause(), claimOf(r), ago)
	return ui.Answer{JSON: out}, err
}

// agoOf reads a form's ago, in milliseconds.
func agoOf(r *ui.Request, wrong string) (time.Duration, error) {
	ago, err := strconv.ParseInt(r.PostFormValue("ago"), 10, 32)
	if err != nil || ago < 0 {
		return 0, domain.Invalid(domain.Detail{Path: "ago", Message: wrong})
	}
	return time.Duration(ago) * time.Millisecond, nil
}

func (d Deps) appendRecording(r *ui.Request) (ui.Answer, error) {
	offset, err := strconv.ParseInt(r.FormValue("offset"), 10, 64)
	if err != nil || offset < 0 {
		return ui.Answer{}, domain.Invalid(domain.Detail{Path: "offset", Message: "must be where the part goes"})
	}
	out, err := d.Evidence.AppendRequest(r.Writer, r.Request, r.Cause(), claimOf(r), r.PathValue("recording"), offset)
	return ui.Answer{JSON: out}, err
}

func (d Deps) recording(r *ui.Request) (ui.Answer, error) {
	out, err := d.Evidence.RecordingOf(r.Context(), r.Person.CheckerID(), r.PathValue("id"), r.PathValue("recording"))
	return ui.Answer{JSON: out}, err
}

func (d Deps) finishRecording(r *ui.Request) (ui.Answer, error) {
	out, err := d.Evidence.FinishRecording(r.Context(), r.Cause(), claimOf(r), r.PathValue("recording"))
	return ui.Answer{JSON: out}, err
}

// markMoment marks a moment for the people who watch the recording. The mark may have
// waited in the browser: ago is the time since the moment.
func (d Deps) markMoment(r *ui.Request) (ui.Answer, error) {
	form := ui.Form(r, map[string]string{"note": "note"})
	label, err := input.Mark(form), form.Problems.Err()
	var (
		at  domain.Position
		ago time.Duration
	)
	if err == nil && r.PostFormValue("ago") != "" {
		ago, err = agoOf(r, "must be how long ago it was")
	}
	if err == nil {
		at, err = d.Commands.MarkMoment(r.Context(), r.Cause(), claimOf(r), label, ago)
	}
	return d.acted(r, at, err, benchPath(r.PathValue("id")))
}
