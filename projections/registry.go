package projections

import (
	"github.com/jmoiron/sqlx"

	"humanqa/domain/policy"
	"humanqa/eventstore/consumer"
	"humanqa/projections/access"
	"humanqa/projections/activity"
	"humanqa/projections/analytics"
	"humanqa/projections/commitstatuses"
	"humanqa/projections/credits"
	"humanqa/projections/events"
	"humanqa/projections/history"
	"humanqa/projections/jobs"
	"humanqa/projections/ledger"
	"humanqa/projections/loops"
	"humanqa/projections/overall"
	"humanqa/projections/oversight"
	"humanqa/projections/people"
	"humanqa/projections/pools"
	"humanqa/projections/projects"
	"humanqa/projections/retention"
	"humanqa/projections/sessions"
	"humanqa/projections/timers"
)

// All lists every read model. A new one is a folder (tables, fold, queries), a line here, and
// a field of Reads with its line in NewReads.
func All() []consumer.Consumer {
	return []consumer.Consumer{
		jobs.Projector,
		credits.Projector,
		ledger.Projector,
		projects.Projector,
		history.Projector,
		events.Projector{},
		sessions.Projector,
		loops.Projector,
		access.Projector,
		access.Erasures,
		people.Projector,
		pools.Projector,
		oversight.Projector,
		commitstatuses.Projector,
		retention.Projector,
		activity.Projector,
		timers.NewProjector(policy.Rules()),
	}
}

// Reads answers the API's queries from the read models. Its methods see committed rows
// only; a caller that must see a write waits for its position first (Supervisor.WaitFor).
type Reads struct {
	Jobs     *jobs.Reads
	Credits  *credits.Reads
	Ledger   *ledger.Reads
	Projects *projects.Reads
	Access   *access.Reads
	People   *people.Reads
	Pools    *pools.Reads
	Acts     *oversight.Reads
	Overall  *overall.Reads
	History  *history.Reads
	Sessions *sessions.Reads
	Loops    *loops.Reads
	Events   *events.Reads
	Commits  *commitstatuses.Reads
	Activity *activity.Reads

	Retention *retention.Reads

	Analytics *analytics.Reads
}

// NewReads reads through the views in schema readmodel.
func NewReads(db *sqlx.DB) *Reads {
	return &Reads{
		Jobs:     jobs.NewReads(db),
		Credits:  credits.NewReads(db),
		Ledger:   ledger.NewReads(db),
		Projects: projects.NewReads(db),
		Access:   access.NewReads(db),
		People:   people.NewReads(db),
		Pools:    pools.NewReads(db),
		Acts:     oversight.NewReads(db),
		Overall:  overall.NewReads(db),
		History:  history.NewReads(db),
		Sessions: sessions.NewReads(db),
		Loops:    loops.NewReads(db),
		Events:   events.NewReads(db),
		Commits:  commitstatuses.NewReads(db),
		Activity: activity.NewReads(db),

		Retention: retention.NewReads(db),

		Analytics: analytics.NewReads(db),
	}
}

// Names lists every read model's name.
func Names() []string {
	var names []string
	for _, p := range All() {
		names = append(names, p.Name())
	}
	return names
}
