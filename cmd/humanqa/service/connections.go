package service

import (
	"context"
	"fmt"
	"os"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	"humanqa/eventstore/node"
	"humanqa/internal/pgpool"
	"humanqa/projections"
	"humanqa/projections/analytics"
)

// division is how this process divides the sessions that it may have at Postgres.
// docs/several-machines.md ("Connections to Postgres") lists them for operators.
type division struct {
	pool int // of which all but one may be lent
	node int // of the embedded node; 0: the log is elsewhere
}

const (
	// fewestPooled lets a read, a transaction that waits for a command, and that command go on.
	fewestPooled = 3
	// embeddedPool is the pool's size at the embedded Postgres, which takes 200 sessions.
	embeddedPool = 48
)

func (c Config) divide() division {
	if c.DatabaseURL == "" {
		return division{pool: embeddedPool, node: node.DefaultConnections}
	}
	d := division{pool: c.DatabaseConnections - c.Roles.listeners()}
	if c.EventStoreURL == "" {
		d.node = min(max(d.pool/2, node.MinConnections), node.DefaultConnections)
		d.pool -= d.node
	}
	return d
}

// fewestConnections is the smallest setting with which every part of the process works.
func (c Config) fewestConnections() int {
	fewest := c.Roles.listeners() + fewestPooled
	if c.EventStoreURL == "" {
		fewest += node.MinConnections
	}
	return fewest
}

// listeners is how many sessions wait for notifications, with a name that shows that the
// process lives: of the log's follower, the consumers, the dispatcher of webhooks, the timers.
func (r Roles) listeners() (n int) {
	for _, listens := range []bool{r.API, r.Projector || r.Webhooks, r.Webhooks, r.Policy} {
		if listens {
			n++
		}
	}
	return n
}

// reads answer requests on lent connections. An export keeps its connection as long as its
// client reads, so exports share a quarter of them.
func (c *Core) reads() *projections.Reads {
	reads := projections.NewReads(c.Lent)
	reads.Analytics = analytics.NewReads(c.exports)
	return reads
}

// processName is the name of a running service's connections in pg_stat_activity. Others read
// the setting from it.
func (c Config) processName() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown" // the rest tells most processes apart
	}
	return fmt.Sprintf("%s %d %d %s", programName, c.DatabaseConnections, os.Getpid(), host)
}

// programName begins the name of every connection whose name shows nothing else.
const programName = "humanqa"

// Walsenders and autovacuum have limits of their own; this session counts like any other.
const roomSQL = `
SELECT current_setting('max_connections')::integer
       - current_setting('superuser_reserved_connections')::integer
       - coalesce(current_setting('reserved_connections', true), '0')::integer
       - count(*) FILTER (WHERE application_name !~ '^(humanqa|consumers |webhooks )') AS room,
       coalesce(array_agg(DISTINCT application_name) FILTER (WHERE application_name ~ '^humanqa [0-9]+ '), '{}') AS processes
FROM pg_stat_activity
WHERE datid IS NOT NULL
  AND usesysid IS NOT NULL`

// CheckConnections compares the sessions that the running processes may have together with
// those that Postgres has for them.
func CheckConnections(ctx context.Context, db *sqlx.DB) error {
	is, err := pgpool.One[struct {
		Room      int
		Processes pq.StringArray
	}](ctx, db, "the room for connections", roomSQL)
	if err != nil {
		return err
	}
	wanted := 0
	for _, name := range is.Processes {
		var each int
		if _, err := fmt.Sscanf(name, programName+" %d ", &each); err != nil {
			return fmt.Errorf("read the connections of %q: %w", name, err)
		}
		wanted += each
	}
	if wanted <= is.Room {
		return nil
	}
	return fmt.Errorf("%d processes may have %d sessions together, and Postgres has %d for them: then requests fail with \"too many clients\"",
		len(is.Processes), wanted, is.Room)
}

// FewerConnections is the next step where CheckConnections finds something.
const FewerConnections = "raise max_connections, or lower HUMANQA_DATABASE_CONNECTIONS in each process (docs/several-machines.md)"
