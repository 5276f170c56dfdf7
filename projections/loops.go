package projections

import (
	"context"
	"time"

	"github.com/jmoiron/sqlx"

	"humanqa/domain"
	"humanqa/domain/loop"
)

// Loops reads agent loop sessions.
type Loops struct{ db *sqlx.DB }

// LoopSession is one run of an agent on a project. LoopID names its stream.
type LoopSession struct {
	ID            string
	LoopID        string
	AccountID     string
	ProjectID     string
	Skill         string
	Status        loop.Status
	Iterations    int
	MaxIterations int
	CreditsSpent  domain.Credits
	FinalReportID string
	FailingKeys   []string // of the latest test
	JobIDs        []string // in order
	StartedAt     time.Time
	LastSeenAt    time.Time
	EndedAt       *time.Time
}

// Session gives one loop session.
func (q *Loops) Session(ctx context.Context, accountID, id string) (LoopSession, error) {
	panic("not built yet")
}
