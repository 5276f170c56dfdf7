package readmodel

import (
	"context"

	"github.com/jmoiron/sqlx"

	"humanqa/domain"
	"humanqa/eventstore/consumer"
)

// Apply folds a batch of events into the tables, as consumer.Projector says.
type Apply func(ctx context.Context, tx *sqlx.Tx, schema string, batch []domain.Recorded) error

// Spec has the parts of a read model; consumer.Projector explains each part.
type Spec struct {
	Name    string
	Version int
	Tables  []consumer.Table
	Handles []string
	Apply   Apply
}

// Model is a read model that consists of its parts only. It implements
// consumer.Projector.
type Model struct{ spec Spec }

// New makes a read model of its parts.
func New(s Spec) Model { return Model{s} }

// Name implements consumer.Consumer.
func (m Model) Name() string { return m.spec.Name }

// Version implements consumer.Projector.
func (m Model) Version() int { return m.spec.Version }

// Tables implements consumer.Projector.
func (m Model) Tables() []consumer.Table { return m.spec.Tables }

// Handles implements consumer.Consumer.
func (m Model) Handles() []string { return m.spec.Handles }

// Apply implements consumer.Projector.
func (m Model) Apply(ctx context.Context, tx *sqlx.Tx, schema string, batch []domain.Recorded) error {
	return m.spec.Apply(ctx, tx, schema, batch)
}
