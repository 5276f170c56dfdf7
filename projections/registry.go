package projections

import (
	"github.com/jmoiron/sqlx"

	"humanqa/domain/policy"
)

// All lists every read model. A new one is one file (DDL, projector, queries)
// and a line here.
func All() []Projector {
	return []Projector{
		jobsProjector{},
		creditsProjector{},
		projectsProjector{},
		historyProjector{},
		eventsProjector{},
		sessionsProjector{},
		loopsProjector{},
		accessProjector{},
		newTimersProjector(policy.Rules()),
	}
}

// Reads answers every query from the read models. Its methods see committed
// rows only; whoever must see a write waits for its position first
// (Supervisor.WaitFor).
type Reads struct {
	Jobs     *Jobs
	Credits  *Credits
	Projects *Projects
	Access   *Access
	History  *History
	Sessions *Sessions
	Loops    *Loops
	Events   *Events
}

// NewReads reads through the views in schema readmodel.
func NewReads(db *sqlx.DB) *Reads {
	db = mapped(db)
	return &Reads{
		Jobs:     &Jobs{db: db},
		Credits:  &Credits{db: db},
		Projects: &Projects{db: db},
		Access:   &Access{db: db},
		History:  &History{db: db},
		Sessions: &Sessions{db: db},
		Loops:    &Loops{db: db},
		Events:   &Events{db: db},
	}
}
