package twin

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jmoiron/sqlx"
	"github.com/sirupsen/logrus"

	"humanqa/domain"
	"humanqa/domain/account"
	"humanqa/domain/command"
	"humanqa/domain/job"
)

const schemaSQL = `
CREATE SCHEMA twin;

CREATE TABLE twin.balances (
    account_id uuid PRIMARY KEY,
    available  bigint NOT NULL CHECK (available >= 0)
);

CREATE TABLE twin.jobs (
    id           uuid PRIMARY KEY,
    account_id   uuid NOT NULL,
    project_id   text NOT NULL,
    status       text NOT NULL,
    url          text NOT NULL,
    title        text NOT NULL,
    description  text NOT NULL,
    type         text NOT NULL,
    type_echo    text NOT NULL,
    urgent       boolean NOT NULL,
    sla_minutes  integer NOT NULL,
    price        bigint NOT NULL,
    items        jsonb NOT NULL,
    created_at   timestamptz NOT NULL
);

CREATE INDEX jobs_of_account ON twin.jobs (account_id, created_at DESC);

CREATE TABLE twin.outbox (
    id       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    event_id uuid NOT NULL,
    type     text NOT NULL,
    payload  jsonb NOT NULL
)`

const openAccountSQL = `
INSERT INTO readmodel.accounts (account_id, name, sandbox, suspended)
VALUES ($1, 'bench', FALSE, FALSE)`

const openKeySQL = `
INSERT INTO readmodel.api_keys (hash, account_id, key_id, prefix, scope, project_id, expires_at, revoked, name, issued_by, issued_at)
VALUES ($1, $2, $3, 'qa_live_', $4, '', NULL, FALSE, '', 'operator', now())`

const openBalanceSQL = `
INSERT INTO twin.balances (account_id, available)
VALUES ($1, $2)`

const lockBalanceSQL = `
SELECT available
FROM twin.balances
WHERE account_id = $1
FOR UPDATE`

const chargeSQL = `
UPDATE twin.balances
SET available = available - $2
WHERE account_id = $1`

const insertJobSQL = `
INSERT INTO twin.jobs (id, account_id, project_id, status, url, title, description, type, type_echo,
    urgent, sla_minutes, price, items, created_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)`

const insertOutboxSQL = `
INSERT INTO twin.outbox (event_id, type, payload)
VALUES ($1, $2, $3)`

// store is the twin's v1.Submitter. The API has no other commands, so the other routes
// answer 500.
type store struct {
	db                                    *sqlx.DB
	lock, charge, insertJob, insertOutbox *sql.Stmt
}

func newStore(ctx context.Context, db *sqlx.DB, log logrus.FieldLogger) (*store, error) {
	if err := prepareSchema(ctx, db, log); err != nil {
		return nil, err
	}
	s := &store{db: db}
	for query, into := range map[string]**sql.Stmt{
		lockBalanceSQL: &s.lock, chargeSQL: &s.charge, insertJobSQL: &s.insertJob, insertOutboxSQL: &s.insertOutbox,
	} {
		var err error
		if *into, err = db.PrepareContext(ctx, query); err != nil { //nolint:sqlclosecheck // they live as long as db
			return nil, fmt.Errorf("prepare: %w", err)
		}
	}
	return s, nil
}

// open makes an account with credits and gives its key.
func (s *store) open(ctx context.Context, credits domain.Credits) (key string, err error) {
	accountID, key := uuid.New(), "qa_live_"+uuid.NewString()
	if _, err := s.db.ExecContext(ctx, openAccountSQL, accountID.String()); err != nil {
		return "", fmt.Errorf("open an account: %w", err)
	}
	if _, err := s.db.ExecContext(ctx, openKeySQL, domain.HashToken(key), accountID.String(), accountID.String()+".1",
		account.ScopeFull); err != nil {
		return "", fmt.Errorf("issue a key: %w", err)
	}
	if _, err := s.db.ExecContext(ctx, openBalanceSQL, accountID, credits); err != nil {
		return "", fmt.Errorf("grant credits: %w", err)
	}
	return key, nil
}

// SubmitJob charges the account and stores the job, in one transaction.
func (s *store) SubmitJob(ctx context.Context, cause command.Cause, in command.SubmitJob) (command.SubmittedJob, error) {
	created := draft(cause, in)
	items, err := json.Marshal(created.Items)
	if err != nil {
		return command.SubmittedJob{}, fmt.Errorf("encode the items: %w", err)
	}
	told, err := json.Marshal(created)
	if err != nil {
		return command.SubmittedJob{}, fmt.Errorf("encode the outbox row: %w", err)
	}
	jobID := uuid.New()

	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return command.SubmittedJob{}, fmt.Errorf("begin: %w", err)
	}
	defer tx.Rollback()
	available, err := s.balance(ctx, tx, cause.AccountID)
	if err != nil {
		return command.SubmittedJob{}, err
	}
	if available < created.Price {
		return command.SubmittedJob{}, domain.InsufficientCredits(created.Price, available)
	}
	err = errors.Join(
		exec(ctx, tx, s.charge, cause.AccountID, created.Price),
		exec(ctx, tx, s.insertJob, jobID, cause.AccountID, in.ProjectID, job.StatusPending, in.URL, in.Title, in.Description,
			in.Type, in.TypeEcho, in.Urgent, created.SLAMinutes, created.Price, items, created.CreatedAt),
		exec(ctx, tx, s.insertOutbox, uuid.New(), created.EventType(), told),
	)
	if err != nil {
		return command.SubmittedJob{}, fmt.Errorf("store the job: %w", err)
	}
	if err := tx.Commit(); err != nil {
		return command.SubmittedJob{}, fmt.Errorf("commit: %w", err)
	}
	return command.SubmittedJob{
		JobID: jobID.String(), Status: job.StatusPending, EstimatedMinutes: created.SLAMinutes,
		CreditsDeducted: created.Price, CreditsRemaining: available - created.Price,
		ChecklistItemCount: len(created.Items),
	}, nil
}

// balance locks the account's row.
func (s *store) balance(ctx context.Context, tx *sql.Tx, accountID string) (available domain.Credits, err error) {
	lock := tx.StmtContext(ctx, s.lock)
	defer func() { _ = lock.Close() }() // the transaction ends it anyway
	if err := lock.QueryRowContext(ctx, accountID).Scan(&available); err != nil {
		return 0, fmt.Errorf("lock the balance: %w", err)
	}
	return available, nil
}

// exec runs a prepared statement on the transaction's connection.
func exec(ctx context.Context, tx *sql.Tx, prepared *sql.Stmt, args ...any) error {
	statement := tx.StmtContext(ctx, prepared)
	defer func() { _ = statement.Close() }() // the transaction ends it anyway
	_, err := statement.ExecContext(ctx, args...)
	return err
}

// draft is the event that both sides derive from a submission.
func draft(cause command.Cause, in command.SubmitJob) *job.Created {
	items := make([]job.Item, len(in.Items))
	for i, it := range in.Items {
		items[i] = job.Item{
			ID: fmt.Sprintf("item-%d", i+1), Key: it.Key,
			Description: it.Description, ExpectedOutcome: it.ExpectedOutcome, Severity: it.Severity,
		}
	}
	sla := in.SLAMinutes
	if sla == 0 {
		sla = 60
	}
	return &job.Created{
		Submission: job.Submission{
			AccountID: cause.AccountID, ProjectID: in.ProjectID, URL: in.URL, Title: in.Title, Description: in.Description,
			Type: in.Type, TypeEcho: in.TypeEcho, Urgent: in.Urgent, SLAMinutes: sla,
			Price: in.Type.Price(in.Urgent), Source: in.Source, Target: in.Target,
		},
		Items: job.UniqueKeys(items), CreatedAt: time.Now().UTC(),
	}
}
