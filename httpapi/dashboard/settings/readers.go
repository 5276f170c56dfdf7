package settings

import (
	"cmp"
	"time"

	"humanqa/domain"
	"humanqa/domain/command"
	"humanqa/httpapi/readers"
	"humanqa/httpapi/ui"
	"humanqa/projections/projects"
)

type readersView struct {
	Readers []readerLine
	Most    int // readers of an account
}

type readerLine struct {
	readers.Reader
	Place   int    // in the list
	Project string // its name; empty: the reader has a key of the whole account
	State   ui.State
	Lag     string // empty: it has read everything
	Refusal refusal
}

// refusal gives the reason why a reader's cursor is refused, and the next step.
type refusal struct{ Reason, Next string }

var refusals = map[domain.Code]refusal{
	domain.CodeAnotherLog: {
		"Its cursor is of another log, or lies behind a restore.",
		"Undo the events that the answer names, and continue with its next as after. If next is null, read from the beginning into an empty copy.",
	},
	domain.CodeCursorAhead: {
		"Its cursor lies beyond the end of the log.",
		"Check that the cursor is of this service. Then continue with the next of the answer as after.",
	},
	domain.CodeCursorGone: {
		"The events after its cursor are no longer kept.",
		"Continue with the next of the answer as after. The operator of the service has an archive of what lies before.",
	},
}

// readers shows where each named reader of the feed is.
func (d Deps) readers(r *ui.Request) (ui.Answer, error) {
	found, err := d.Readers.Of(r.Context(), r.Account.ID, "")
	if err != nil {
		return ui.Answer{}, err
	}
	list, _, err := d.Reads.Projects.List(r.Context(), r.Account.ID, projects.Filter{Limit: projectsOffered})
	if err != nil {
		return ui.Answer{}, err
	}
	names := map[string]string{}
	for _, p := range list {
		names[p.ID] = p.Name
	}
	now, err := d.Commands.AccountTime(r.Context(), command.Cause{AccountID: r.Account.ID, Sandbox: r.Account.Sandbox})
	if err != nil {
		return ui.Answer{}, err
	}
	v := readersView{Most: readers.PerAccount}
	for i, one := range found {
		line := lineOf(one, now)
		line.Place = i + 1
		if one.ProjectID != "" {
			line.Project = cmp.Or(names[one.ProjectID], "one project")
		}
		v.Readers = append(v.Readers, line)
	}
	return ui.Show("readers", "Event readers", v), nil
}

func lineOf(one readers.Reader, now time.Time) readerLine {
	line := readerLine{Reader: one, Refusal: refusals[one.Refused]}
	if lag := one.Lag(now); lag > 0 {
		line.Lag = ui.Span(lag)
	}
	switch one.State(now) {
	case readers.Refused:
		line.State = ui.NewState("Refused", "fail", "alert")
	case readers.Behind:
		line.State = ui.NewState("Behind", "warn", "clock")
	case readers.Current:
		line.State = ui.NewState("Current", "pass", "check")
	}
	return line
}

func (d Deps) forgetReader(r *ui.Request) (ui.Answer, error) {
	err := d.Readers.Forget(r.Context(), r.Account.ID, r.PostFormValue("project"), r.PostFormValue("name"))
	return ui.Go("/dashboard/readers"), err
}
