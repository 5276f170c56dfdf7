package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"humanqa/domain"
	"humanqa/domain/job"
	"humanqa/eventstore"
	"humanqa/internal/pgdev"
)

const (
	inserts = "insert"
	appends = "append"

	// perStream is how many events a writer appends to a stream before it
	// begins the next one: about a job's life.
	perStream = 8
)

// logSpeed is part (a). Both sides write the same bytes, one event an
// operation, each writer waiting for its own. Appends also pay for making the
// JSON, as they do in the service.
func logSpeed(ctx context.Context, b *bench) (_ section, err error) {
	var stops stops
	defer func() { err = errors.Join(err, stops.run(ctx)) }()
	pg, err := b.startPostgres(ctx, "log", &stops)
	if err != nil {
		return section{}, err
	}
	const plain = "plain"
	if err := execute(ctx, pg.DSN(pgdev.Database), "CREATE DATABASE "+plain); err != nil {
		return section{}, err
	}
	client, db, err := b.startLog(ctx, pg, "log", &stops)
	if err != nil {
		return section{}, err
	}
	data, meta, err := eventstore.Encode(newEvent())
	if err != nil {
		return section{}, err
	}
	s := section{
		Title: "the log: appends through the official client, and Postgres' own single-row INSERT ... COMMIT",
		Notes: []string{
			fmt.Sprintf("one event an operation, %d bytes of data and %d of metadata; rounds of %s, medians of %d", len(data), len(meta),
				b.round, b.rounds),
			"insert: a prepared statement on a connection for each writer, a table with nothing but its primary key",
			"append: each writer to its own streams at the expected revision; event made and encoded anew each time",
		},
	}
	ratio := make(map[int]float64)
	var alone float64
	for _, writers := range []int{1, 16, 64, 256} {
		in, err := openInserts(ctx, pg.DSN(plain), writers, data, meta)
		if err != nil {
			return section{}, err
		}
		ap := newAppends(client, writers)
		// A checkpoint of Postgres between rounds: a round must not pay for the writes
		// that the round before left behind.
		calm := func(ctx context.Context) error {
			_, err := db.ExecContext(ctx, "CHECKPOINT")
			return err
		}
		found, err := compare(ctx, plural(writers, "writer"), b.rounds,
			side{inserts, in.round(b.round, calm)}, side{appends, ap.round(b.round, calm)})
		if err = errors.Join(err, in.close()); err != nil {
			return section{}, fmt.Errorf("%d writers: %w", writers, err)
		}
		s.Measurements = append(s.Measurements, found...)
		ratio[writers] = found[1].PerSecond / found[0].PerSecond
		if writers == 1 {
			alone = found[1].P50
		}
	}
	s.Figures = []figure{
		{"appends to inserts, 1 writer", ratio[1], "x"},
		{"appends to inserts, 16 writers", ratio[16], "x"},
	}
	s.Goals = []goal{
		atLeast("appends to inserts, 64 writers", ratio[64], 0.65),
		atLeast("appends to inserts, 256 writers", ratio[256], 1.15),
		below("append by one writer, p50", alone, 1, "ms"),
	}
	return s, nil
}

func plural(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// newEvent is a job of ordinary size.
func newEvent() domain.NewEvent {
	command := uuid.New()
	now := time.Now().UTC()
	return domain.NewEvent{
		ID: command,
		Event: &job.Created{
			Submission: job.Submission{
				AccountID: uuid.NewString(), URL: "https://shop.example.com/checkout", Title: "Checkout with a voucher",
				Description: "Put two things into the cart, use the voucher, pay by invoice.",
				Type:        job.PaymentFlow, TypeEcho: "Payment Flow", SLAMinutes: 60, Price: 10, Source: "api",
			},
			Items: []job.Item{{
				ID: "item-1", Key: "voucher-lowers-total", Description: "The voucher lowers the total", Severity: job.Major,
			}},
			CreatedAt: now,
		},
		Meta: domain.Metadata{
			CommandID: command, CorrelationID: uuid.NewString(), Actor: "key:" + command.String(),
			AccountID: command.String(), Time: now,
		},
	}
}

// inserting is the Postgres side: one connection and one prepared statement a
// writer.
type inserting struct {
	db         *sql.DB
	conns      []*sql.Conn
	statements []*sql.Stmt
	data, meta []byte
}

const createPlainSQL = `
CREATE TABLE IF NOT EXISTS plain (
    position bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    revision bigint NOT NULL,
    created  bigint NOT NULL,
    event_id uuid NOT NULL,
    is_json  boolean NOT NULL,
    stream   text COLLATE "C" NOT NULL,
    type     text COLLATE "C" NOT NULL,
    data     bytea NOT NULL,
    metadata bytea NOT NULL
)`

const insertPlainSQL = `
INSERT INTO plain (revision, created, event_id, is_json, stream, type, data, metadata)
VALUES ($1, $2, $3, TRUE, $4, $5, $6, $7)`

func openInserts(ctx context.Context, dsn string, writers int, data, meta []byte) (_ *inserting, err error) {
	db, err := sql.Open("postgres", dsn)
	if err != nil {
		return nil, err
	}
	in := &inserting{db: db, data: data, meta: meta}
	defer func() {
		if err != nil {
			err = errors.Join(err, in.close())
		}
	}()
	if _, err := db.ExecContext(ctx, createPlainSQL); err != nil {
		return nil, fmt.Errorf("create the table: %w", err)
	}
	for range writers {
		conn, err := db.Conn(ctx)
		if err != nil {
			return nil, fmt.Errorf("connect: %w", err)
		}
		in.conns = append(in.conns, conn)
		statement, err := conn.PrepareContext(ctx, insertPlainSQL) //nolint:sqlclosecheck // closed by close
		if err != nil {
			return nil, fmt.Errorf("prepare: %w", err)
		}
		in.statements = append(in.statements, statement)
	}
	return in, nil
}

func (in *inserting) close() error {
	var errs []error
	for _, s := range in.statements {
		errs = append(errs, s.Close())
	}
	for _, c := range in.conns {
		errs = append(errs, c.Close())
	}
	return errors.Join(append(errs, in.db.Close())...)
}

func (in *inserting) round(window time.Duration, before func(context.Context) error) func(context.Context) (sample, error) {
	return func(ctx context.Context) (sample, error) {
		if err := before(ctx); err != nil {
			return sample{}, err
		}
		return closedLoop(ctx, len(in.conns), window, func(ctx context.Context, w int) error {
			id := uuid.New()
			_, err := in.statements[w].ExecContext(ctx, 0, time.Now().UnixMicro(), id, domain.JobStream(id.String()), "job.created",
				in.data, in.meta)
			return err
		})
	}
}

// appending is the log's side.
type appending struct {
	client  *eventstore.Client
	writers []appender
}

type appender struct {
	stream string
	next   int // revision of the stream's next event
}

func newAppends(client *eventstore.Client, writers int) *appending {
	return &appending{client: client, writers: make([]appender, writers)}
}

func (ap *appending) round(window time.Duration, before func(context.Context) error) func(context.Context) (sample, error) {
	return func(ctx context.Context) (sample, error) {
		if err := before(ctx); err != nil {
			return sample{}, err
		}
		return closedLoop(ctx, len(ap.writers), window, func(ctx context.Context, w int) error {
			at := &ap.writers[w]
			if at.stream == "" || at.next == perStream {
				*at = appender{stream: domain.JobStream(uuid.NewString())}
			}
			// The revision before the next one; NoStream is -1.
			_, err := ap.client.Append(ctx, at.stream, domain.ExpectedRevision(at.next-1), []domain.NewEvent{newEvent()})
			at.next++
			return err
		})
	}
}
