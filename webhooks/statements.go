package webhooks

import (
	"context"
	"fmt"
	"sync"

	"github.com/jmoiron/sqlx"
)

// statements keeps the dispatcher's queries prepared: it asks the same few all
// the time, and planning them would take longer than running them. A nil
// pointer prepares nothing.
type statements struct {
	db *sqlx.DB

	mu    sync.Mutex
	known map[string]*sqlx.Stmt // by query
}

// prepare makes the queries ready. It must be called outside a transaction: it
// takes a connection of its own.
func (s *statements) prepare(ctx context.Context, queries ...string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, query := range queries {
		if s.known[query] != nil {
			continue
		}
		stmt, err := s.db.PreparexContext(ctx, query) //nolint:sqlclosecheck // close does
		if err != nil {
			return fmt.Errorf("prepare: %w", err)
		}
		if s.known == nil {
			s.known = map[string]*sqlx.Stmt{}
		}
		s.known[query] = stmt
	}
	return nil
}

// unprepared is for those who ask rarely.
var unprepared *statements

func (s *statements) get(query string) *sqlx.Stmt {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.known[query]
}

func (s *statements) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, stmt := range s.known {
		_ = stmt.Close() // the connection may be gone, and the statement with it
	}
	s.known = nil
}

// exec runs a query in the transaction, prepared if it is.
func (s *statements) exec(ctx context.Context, tx *sqlx.Tx, query string, args ...any) error {
	var err error
	if stmt := s.get(query); stmt != nil {
		_, err = tx.StmtxContext(ctx, stmt).ExecContext(ctx, args...)
	} else {
		_, err = tx.ExecContext(ctx, query, args...)
	}
	return err
}

// list is exec for rows.
func (s *statements) list(ctx context.Context, tx *sqlx.Tx, rows any, query string, args ...any) error {
	if stmt := s.get(query); stmt != nil {
		return tx.StmtxContext(ctx, stmt).SelectContext(ctx, rows, args...) //nolint:sqlclosecheck // the transaction's end closes it
	}
	return tx.SelectContext(ctx, rows, query, args...)
}
