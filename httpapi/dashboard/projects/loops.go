package projects

import (
	"humanqa/domain"
	"humanqa/domain/loop"
	"humanqa/domain/person"
	"humanqa/httpapi/dashboard/words"
	"humanqa/httpapi/ui"
	"humanqa/projections/jobs"
	"humanqa/projections/loops"
	"humanqa/projections/projects"
)

// stepsShown bounds the steps that a loop's page shows: the latest.
const stepsShown = 50

type loopView struct {
	loops.Session
	Project projects.Project
	Steps   []step   // the latest first
	Failing []string // the items that failed in the latest report
	MayEnd  bool
}

type step struct {
	jobs.Summary
	N int
}

func (d Deps) loop(r *ui.Request, s loops.Session) (_ ui.Answer, err error) {
	v := loopView{Session: s, MayEnd: r.May(person.Developer) && s.Status == loop.StatusRunning}
	if v.Project, err = d.Reads.Projects.Get(r.Context(), s.AccountID, s.ProjectID); err != nil {
		return ui.Answer{}, err
	}
	live := []string{domain.LoopStream(s.LoopID)}
	for i := len(s.JobIDs) - 1; i >= max(0, len(s.JobIDs)-stepsShown); i-- {
		j, err := d.Reads.Jobs.Job(r.Context(), s.AccountID, s.JobIDs[i])
		if domain.IsKind(err, domain.KindNotFound) {
			continue // its submission crashed, and was given back
		}
		if err != nil {
			return ui.Answer{}, err
		}
		v.Steps = append(v.Steps, step{j.Summary(), i + 1})
		live = append(live, domain.JobStream(j.ID))
	}
	open, err := d.Reads.History.Open(r.Context(), s.AccountID, s.ProjectID, failuresNamed)
	v.Failing = words.Failing(s.FailingKeys, open)
	return ui.Show("loop", "Loop of "+s.Skill, v, live...), err
}

// failuresNamed bounds the open failures of a project that are read for their descriptions.
const failuresNamed = 500

// endLoop is for a loop whose agent is known to be gone.
func (d Deps) endLoop(r *ui.Request, s loops.Session) (ui.Answer, error) {
	at, err := d.Commands.FinalizeLoop(r.Context(), r.Cause(), s.LoopID, s.ID, loop.StatusAbandoned)
	return r.Done(at, err, "/dashboard/loops/"+s.ID)
}
