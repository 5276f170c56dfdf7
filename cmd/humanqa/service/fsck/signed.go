package fsck

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"time"

	"github.com/jmoiron/sqlx"

	"humanqa/domain/audit"
	"humanqa/eventstore"
	"humanqa/eventstore/node/store"
	"humanqa/internal/backoff"
	"humanqa/projections/auditlog"
)

// logIsAsSigned is the invariant that the audit holds (ARCHITECTURE.md).
const logIsAsSigned = 22

// ReadCheckpoints reads checkpoints from files, and verifies their signatures.
func (i Installation) ReadCheckpoints(ctx context.Context, files []string) ([]auditlog.Checkpoint, error) {
	verifier, err := i.Signer.Verifier(ctx)
	if err != nil {
		return nil, err
	}
	var kept []auditlog.Checkpoint
	for _, file := range files {
		signed, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		one, err := auditlog.Open(string(signed), verifier)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		kept = append(kept, one)
	}
	return kept, nil
}

// AgainstTree compares the log with its Merkle tree and its checkpoints, the
// stored ones and those of the files. see gets every event, too.
func (i Installation) AgainstTree(
	ctx context.Context, files []string, see func(eventstore.RawEvent) error,
) (*auditlog.Check, []audit.Finding, error) {
	kept, err := i.ReadCheckpoints(ctx, files)
	if err != nil {
		return nil, nil, err
	}
	tx, err := i.Lent.BeginTxx(ctx, &sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: true})
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = tx.Rollback() }() // it only reads
	check, err := auditlog.NewCheck(ctx, tx, i.Signer, kept)
	if err != nil {
		return nil, nil, err
	}
	written, err := i.lastRow(ctx, tx)
	if err != nil {
		return nil, nil, err
	}
	err = auditlog.Each(ctx, i.Log, func(e eventstore.RawEvent) error {
		if err := see(e); err != nil {
			return err
		}
		return check.See(ctx, e)
	})
	if err != nil {
		return nil, nil, err
	}
	found, err := check.Findings(ctx)
	if err != nil {
		return nil, nil, err
	}
	if served, err := i.serves(ctx, written); err != nil {
		return nil, nil, err
	} else if !served {
		found = append(found, auditlog.Finding{Problem: fmt.Sprintf(
			"the log's table ends at position %d, and its node has not written that: events were put in by SQL", written)})
	}
	findings := make([]audit.Finding, len(found))
	for i, f := range found {
		findings[i] = audit.Finding{Invariant: logIsAsSigned, Stream: f.Stream, Problem: f.Problem}
		if f.Stream == "" {
			findings[i].Stream = "$all"
		}
	}
	return check, findings, nil
}

// lastRow is the last position in the table of the embedded log; zero: the log is elsewhere.
func (i Installation) lastRow(ctx context.Context, tx *sqlx.Tx) (uint64, error) {
	if !i.Embedded {
		return 0, nil
	}
	position, err := store.Head(ctx, tx)
	return uint64(position), err
}

// published is how long a node may take to show what it has written.
const published = 5 * time.Second

// serves says whether the log's node has shown a position, which is in its table.
func (i Installation) serves(ctx context.Context, written uint64) (bool, error) {
	for began := time.Now(); ; {
		head, err := i.Log.Head(ctx)
		if err != nil || head.Commit >= written {
			return err == nil, err
		}
		if time.Since(began) > published {
			return false, nil
		}
		if err := backoff.Wait(ctx, published/50); err != nil {
			return false, err
		}
	}
}

// Unsigned counts the findings of the audit.
func Unsigned(found []audit.Finding) (n int) {
	for _, f := range found {
		if f.Invariant == logIsAsSigned {
			n++
		}
	}
	return n
}

// NothingElse is for a comparison with the tree alone.
func NothingElse(eventstore.RawEvent) error { return nil }
