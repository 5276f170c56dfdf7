package settings

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"humanqa/domain"
	"humanqa/domain/command"
	"humanqa/domain/retention"
	"humanqa/httpapi/dashboard/words"
	"humanqa/httpapi/evidence"
	"humanqa/httpapi/input"
	"humanqa/httpapi/ui"
	"humanqa/httpapi/wire"
	"humanqa/projections/projects"
	kept "humanqa/projections/retention"
)

type evidenceView struct {
	Usage    evidence.Usage
	Keep     retention.Keep // the account's
	Settings []kept.Setting // of projects
	Holds    []kept.Hold
	Projects []projects.Project
	Names    map[string]string         // of projects
	Called   func(actor string) string // the name of a hold's author
	Form     evidenceForm
	Estimate *evidence.Usage // the effect of the form's days; nil: not asked for
	Job      string          // the job for which a hold is asked
}

// evidenceForm holds the fields of the form; empty days keep everything.
type evidenceForm struct{ Project, ProjectName, Evidence, Recordings string }

// Sized shows a number of files with their bytes.
func (evidenceView) Sized(s evidence.Size) string {
	return fmt.Sprintf("%s, %.1f MB", ui.Count(int(s.Files), "file"), float64(s.Bytes)/1e6)
}

// Kept says how long a setting keeps evidence.
func (evidenceView) Kept(s kept.Setting) string {
	return retention.Keep{EvidenceDays: s.EvidenceDays, RecordingsDays: s.RecordingsDays}.Words()
}

// evidence shows how much evidence there is, how long it is kept, and the holds.
func (d Deps) evidence(r *ui.Request) (ui.Answer, error) {
	v, err := d.evidenceView(r)
	v.Job = r.URL.Query().Get("job")
	if project := r.URL.Query().Get("project"); err == nil && project != "" {
		v.Form.Project = project
		for _, s := range v.Settings {
			if s.ProjectID == project {
				v.Form.Evidence, v.Form.Recordings = daysText(s.EvidenceDays), daysText(s.RecordingsDays)
			}
		}
	}
	return ui.Show("evidence", "Evidence", v), err
}

func (d Deps) evidenceView(r *ui.Request) (v evidenceView, err error) {
	ctx, id := r.Context(), r.Account.ID
	if v.Usage, err = d.Evidence.Usage(ctx, id); err != nil {
		return v, err
	}
	if v.Keep, _, err = d.Commands.AccountRetention(ctx, id); err != nil {
		return v, err
	}
	v.Form.Evidence, v.Form.Recordings = daysText(v.Keep.EvidenceDays), daysText(v.Keep.RecordingsDays)
	if v.Projects, _, err = d.Reads.Projects.List(ctx, id, projects.Filter{Limit: projectsOffered}); err != nil {
		return v, err
	}
	v.Names = words.ProjectNames(v.Projects)
	settings, err := d.Reads.Retention.Settings(ctx, id)
	if err != nil {
		return v, err
	}
	v.Settings = slices.DeleteFunc(settings, func(s kept.Setting) bool { return s.ProjectID == "" })
	if v.Holds, err = d.Reads.Retention.Holds(ctx, id); err != nil {
		return v, err
	}
	authors := wire.List(v.Holds, func(h kept.Hold) string { return h.PlacedBy })
	v.Called, err = words.AuthorsOf(ctx, d.Credentials, d.Reads, id, authors...)
	return v, err
}

func daysText(days *int) string {
	if days == nil {
		return ""
	}
	return strconv.Itoa(*days)
}

// keepForm reads the form: days that are empty keep everything.
func keepForm(r *ui.Request) (form evidenceForm, change retention.Change, err error) {
	form = evidenceForm{
		Project: r.PostFormValue("project"), Evidence: strings.TrimSpace(r.PostFormValue("evidence")),
		Recordings: strings.TrimSpace(r.PostFormValue("recordings")),
	}
	body := map[string]any{retention.EvidenceDays: nil, retention.RecordingsDays: nil}
	for name, text := range map[string]string{retention.EvidenceDays: form.Evidence, retention.RecordingsDays: form.Recordings} {
		if text == "" {
			continue
		}
		if days, err := strconv.Atoi(text); err == nil {
			body[name] = days
		} else {
			body[name] = text
		}
	}
	r.Named(retention.EvidenceDays, "evidence")
	r.Named(retention.RecordingsDays, "recordings")
	o := ui.Object(body)
	change = input.Retention(o)
	return form, change, o.Problems.Err()
}

// estimateEvidence shows the evidence that would go, before anything is saved.
func (d Deps) estimateEvidence(r *ui.Request) (ui.Answer, error) {
	form, change, err := keepForm(r)
	if err != nil {
		return ui.Answer{}, err
	}
	v, err := d.evidenceView(r)
	if err != nil {
		return ui.Answer{}, err
	}
	v.Form = form
	if form.Project != "" {
		p, err := d.Reads.Projects.Get(r.Context(), r.Account.ID, form.Project)
		if err != nil {
			return ui.Answer{}, err
		}
		v.Form.ProjectName = p.Name
	}
	estimate, err := evidence.Estimate(r.Context(), d.Evidence.DB, r.Account.ID, form.Project, change.On(retention.Keep{}))
	if err != nil {
		return ui.Answer{}, err
	}
	v.Estimate = &estimate
	return ui.Show("evidence", "Evidence", v), nil
}

// keepEvidence saves the days of the form.
func (d Deps) keepEvidence(r *ui.Request) (ui.Answer, error) {
	form, change, err := keepForm(r)
	if err != nil {
		return ui.Answer{}, err
	}
	var at domain.Position
	if form.Project == "" {
		_, at, err = d.Commands.SetAccountRetention(r.Context(), r.Cause(), change)
	} else {
		var update command.UpdateProject
		update.Keep = change
		_, at, err = d.Commands.UpdateProject(r.Context(), r.Cause(), form.Project, update)
	}
	return r.Done(at, err, "/dashboard/evidence")
}

// holdEvidence keeps evidence whatever the settings say.
func (d Deps) holdEvidence(r *ui.Request) (ui.Answer, error) {
	return d.changeHold(r, d.Commands.PlaceHold)
}

func (d Deps) releaseEvidence(r *ui.Request) (ui.Answer, error) {
	return d.changeHold(r, d.Commands.ReleaseHold)
}

func (d Deps) changeHold(
	r *ui.Request, do func(context.Context, command.Cause, command.EvidenceSubject, string, bool) (domain.Position, error),
) (ui.Answer, error) {
	of := command.EvidenceSubject{Kind: r.PostFormValue("kind"), ID: r.PostFormValue("id")}
	switch of.Kind {
	case retention.OfAccount:
		of.ID = r.Account.ID
		if project := r.PostFormValue("project"); project != "" {
			of = command.EvidenceSubject{Kind: retention.OfProject, ID: project}
		}
	case retention.OfProject, retention.OfJob:
	default:
		return ui.Answer{}, domain.Invalid(domain.Detail{Path: "kind", Message: "must be account, project or job"})
	}
	reason, err := r.Text("reason", retention.MaxReason)
	var at domain.Position
	if err == nil {
		at, err = do(r.Context(), r.Cause(), of, reason, false)
	}
	return r.Done(at, err, "/dashboard/evidence#holds")
}
