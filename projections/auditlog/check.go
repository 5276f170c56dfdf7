package auditlog

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jmoiron/sqlx"
	"golang.org/x/mod/sumdb/tlog"

	"humanqa/domain"
	"humanqa/eventstore"
	"humanqa/internal/pgpool"
)

const (
	// window is how many events ahead the check looks for a moved event.
	window = 256
	// maxPlaces bounds the findings that are listed one by one.
	maxPlaces = 10
	// leavesPage is how many of the tree's leaves are in memory at a time.
	leavesPage = 4 * tileWidth
)

// Finding is a difference: its stream and the problem.
type Finding struct {
	Stream  string // empty where it is about the whole log
	Problem string // lines, at most ten
}

// Check compares a log with its tree and its checkpoints, in one pass. See takes every
// event in the log's order, and Findings lists the differences. Its memory does not grow
// with the log.
type Check struct {
	db       sqlx.ExtContext
	tree     Tree
	signer   *Signer
	verifier string
	bound    eventstore.Bound
	forged   int // events that are not proved to be the service's

	size int64 // of the tree, when the check began
	log  frontier
	last domain.Position

	ahead  []Leaf      // events of the log that are not compared yet
	stored []Leaf      // leaves of the tree that are not compared yet
	next   int64       // the tree's next leaf to read
	hashed frontier    // over the tree's own hashes of its leaves
	tiles  []tlog.Hash // of the leaves of the last tile read
	tile   int64       // the next one

	kept  []Checkpoint // given by the caller, by size
	notes []storedNote // stored in the database, by size
	after int64        // which of those were read

	good     Checkpoint  // the newest checkpoint that the log agrees with
	bad      *Checkpoint // the oldest checkpoint that it contradicts
	places   []Finding
	more     int
	findings []Finding
	Signed   int // checkpoints that were compared with the log
}

const treeExistsSQL = `
SELECT EXISTS (
    SELECT
    FROM pg_attribute
    WHERE attrelid = to_regclass('readmodel.tree_leaves')
      AND attname = 'is_json')`

// NewCheck begins a check, in a transaction that sees one moment. kept are
// checkpoints from outside; those that are stored are read from the database.
func NewCheck(ctx context.Context, tx *sqlx.Tx, signer *Signer, kept []Checkpoint) (c *Check, err error) {
	c = &Check{db: tx, tree: NewTree(tx), signer: signer, kept: slices.Clone(kept)}
	if c.verifier, err = signer.Verifier(ctx); err != nil {
		return nil, err
	}
	if c.bound, err = signer.log.Bound(ctx); err != nil {
		return nil, fmt.Errorf("read how the log is proved: %w", err)
	}
	slices.SortFunc(c.kept, func(a, b Checkpoint) int { return cmp.Compare(a.Size, b.Size) })
	grows, err := pgpool.One[bool](ctx, tx, "whether there is a tree", treeExistsSQL)
	if err != nil {
		return nil, err
	}
	if grows { // else no service of this version has run yet
		if c.size, err = c.tree.Size(ctx); err != nil {
			return nil, err
		}
	}
	return c, c.readNotes(ctx)
}

// Events is the number of events seen.
func (c *Check) Events() int64 { return c.log.size }

// Root is the root hash of the events seen.
func (c *Check) Root() tlog.Hash { return c.log.root() }

// Compared is how many events the tree had when the check began.
func (c *Check) Compared() int64 { return min(c.size, c.log.size) }

// Bound says by which key, and from where on, the log's events are proved.
func (c *Check) Bound() eventstore.Bound { return c.bound }

// See takes the next event.
func (c *Check) See(ctx context.Context, e eventstore.RawEvent) error {
	l := leafOf(e.Recorded())
	if why := c.signer.log.Unproved(e, c.bound); why != "" {
		if c.forged++; c.forged <= maxPlaces {
			c.find(e.Stream, "%s %s", l, why)
		}
	}
	c.log.add(l.Hash())
	c.last = l.Position
	if err := c.hold(ctx); err != nil {
		return err
	}
	if c.log.size > c.size && len(c.ahead) == 0 && c.next == c.size && len(c.stored) == 0 {
		return nil // younger than the tree
	}
	c.ahead = append(c.ahead, l)
	return c.settle(ctx, false)
}

// hold compares the root with the checkpoints of this very size.
func (c *Check) hold(ctx context.Context) error {
	for len(c.kept) > 0 && c.kept[0].Size == c.log.size {
		c.agree(c.kept[0])
		c.kept = c.kept[1:]
	}
	for len(c.notes) > 0 && c.notes[0].Size <= c.log.size {
		signed, err := Open(c.notes[0].Note, c.verifier)
		switch {
		case err != nil:
			c.find("", "the stored checkpoint of %d events: %v", c.notes[0].Size, err)
		case signed.Size != c.log.size:
			c.find("", "the stored checkpoint of %d events is filed under %d", signed.Size, c.notes[0].Size)
		default:
			c.agree(signed)
		}
		if c.notes = c.notes[1:]; len(c.notes) == 0 {
			if err := c.readNotes(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *Check) readNotes(ctx context.Context) (err error) {
	c.notes, err = storedNotes(ctx, c.db, c.after)
	if n := len(c.notes); n > 0 {
		c.after = c.notes[n-1].Size
	}
	return err
}

func (c *Check) agree(signed Checkpoint) {
	c.Signed++
	switch {
	case c.log.root() == signed.Root && c.bad == nil:
		c.good = signed
	case c.log.root() != signed.Root && c.bad == nil:
		c.bad = &signed
	}
}

// settle compares events with the tree's leaves, as far as they can be matched; end says
// that no more events will come.
func (c *Check) settle(ctx context.Context, end bool) error {
	for len(c.ahead) > 0 || end {
		if len(c.stored) < window && c.next < c.size {
			if err := c.fill(ctx); err != nil {
				return err
			}
		}
		switch {
		case len(c.ahead) == 0 && len(c.stored) == 0:
			return nil
		case len(c.ahead) > 0 && len(c.stored) > 0 && c.ahead[0].Hash() == c.stored[0].Hash():
			c.ahead, c.stored = c.ahead[1:], c.stored[1:]
		case len(c.ahead) < window && !end:
			return nil // more events are needed to decide
		default:
			c.differ()
		}
	}
	return nil
}

// differ records the difference between the first event and the first leaf.
func (c *Check) differ() {
	switch {
	case len(c.stored) == 0:
		// Behind the tree's end only what is younger than the tree may come; the
		// others it lost its count by.
		c.ahead = c.ahead[1:]
		return
	case len(c.ahead) == 0:
		c.gone()
		return
	}
	is, was := c.ahead[0], c.stored[0]
	sameEvent := func(of Leaf) func(Leaf) bool { return func(l Leaf) bool { return l.ID == of.ID } }
	later := slices.IndexFunc(c.ahead, sameEvent(was))
	earlier := slices.IndexFunc(c.stored, sameEvent(is))
	switch {
	case later == 0, later < 0 && earlier < 0 && is.Stream == was.Stream && is.Revision == was.Revision:
		c.place(was.Stream, "was changed: "+was.String(), is.differences(was)...)
		c.ahead, c.stored = c.ahead[1:], c.stored[1:]
	case earlier < 0:
		c.place(is.Stream, fmt.Sprintf("was put in at place %d: %s", c.at(), is))
		c.ahead = c.ahead[1:]
	case later < 0:
		c.gone()
	default:
		was = c.stored[earlier]
		c.place(is.Stream, fmt.Sprintf("was moved to place %d, from %d: %s", c.at(), was.Index, was), is.differences(was)...)
		c.ahead, c.stored = c.ahead[1:], slices.Delete(c.stored, earlier, earlier+1)
	}
}

// at is the place in the log of the first event that is not compared.
func (c *Check) at() int64 { return c.log.size - int64(len(c.ahead)) }

func (c *Check) gone() {
	was := c.stored[0]
	c.place(was.Stream, fmt.Sprintf("is gone from place %d: %s", was.Index, was))
	c.stored = c.stored[1:]
}

func (c *Check) place(stream, what string, lines ...string) {
	if len(c.places) == maxPlaces {
		c.more++
		return
	}
	for _, line := range lines[:min(len(lines), 9)] {
		what += "\n  " + line
	}
	c.places = append(c.places, Finding{Stream: stream, Problem: what})
}

func (c *Check) find(stream, format string, args ...any) {
	if len(c.findings) < maxPlaces {
		c.findings = append(c.findings, Finding{Stream: stream, Problem: fmt.Sprintf(format, args...)})
	}
}

// fill reads more of the tree's leaves and compares them with its hashes.
func (c *Check) fill(ctx context.Context) error {
	leaves, err := c.tree.leaves(ctx, c.next, min(c.next+leavesPage, c.size))
	if err != nil {
		return err
	}
	if len(leaves) == 0 {
		c.find("", "the tree has no leaves from %d on, of %d", c.next, c.size)
		c.next = c.size
		return nil
	}
	for _, l := range leaves {
		if l.Index != c.next {
			c.find("", "the tree has no leaf %d", c.next)
			c.next = l.Index
		}
		for c.tile <= l.Index/tileWidth {
			if err := c.nextTile(ctx); err != nil {
				return err
			}
		}
		if at := int(l.Index % tileWidth); at >= len(c.tiles) || c.tiles[at] != l.Hash() {
			c.find(l.Stream, "the tree's hash of leaf %d is not that of %s", l.Index, l)
		}
		c.next++
	}
	c.stored = append(c.stored, leaves...)
	return nil
}

// nextTile reads the hashes of the next leaves, which also make the tree's roots.
func (c *Check) nextTile(ctx context.Context) error {
	hashes, err := c.tree.leafHashes(ctx, c.tile)
	if err != nil {
		return err
	}
	first := c.tile * tileWidth
	c.tile++
	c.tiles = c.tiles[:0]
	for ; len(hashes) >= tlog.HashSize; hashes = hashes[tlog.HashSize:] {
		c.tiles = append(c.tiles, tlog.Hash(hashes))
	}
	for i, h := range c.tiles {
		if at := first + int64(i); at == c.hashed.size && at < c.size {
			c.hashed.add(h)
		}
	}
	return nil
}

// Findings ends the check.
func (c *Check) Findings(ctx context.Context) ([]Finding, error) {
	if err := c.settle(ctx, true); err != nil {
		return nil, err
	}
	for _, k := range c.kept {
		c.find("", "the log has %d events, a checkpoint has %d (to position %s, signed %s): the end is gone",
			c.log.size, k.Size, k.Position, k.Time.UTC().Format("2006-01-02T15:04:05Z"))
	}
	if err := c.findUnproved(ctx); err != nil {
		return nil, err
	}
	if n := len(c.notes); n > 0 {
		c.find("", "the log has %d events, a stored checkpoint has %d: the end is gone", c.log.size, c.notes[n-1].Size)
	}
	out := slices.Concat(c.places, c.findings)
	if c.more > 0 {
		out = append(out, Finding{Problem: fmt.Sprintf("and %d more events", c.more)})
	}
	if err := c.inner(ctx); err != nil {
		out = append(out, Finding{Problem: err.Error()})
	}
	if c.bad == nil {
		return out, nil
	}
	// The comparison of single events relies on the tree; the checkpoints decide about
	// log and tree.
	from, to := c.good.Position, c.bad.Position
	what := fmt.Sprintf("the first %d events are not those of the checkpoint that was signed %s", c.bad.Size,
		c.bad.Time.UTC().Format("2006-01-02T15:04:05Z"))
	if c.good.Size > 0 {
		what += fmt.Sprintf("; the first %d are those of an earlier one", c.good.Size)
	}
	what += fmt.Sprintf(": the first difference is behind position %s and not behind %s", from, to)
	if root, err := c.treeAt(ctx, c.bad.Size); err != nil || root != c.bad.Root {
		what += "\n  the tree was rewritten too: it does not show which event"
	} else if len(c.places) > 0 {
		what += "\n  the tree is the one that was signed: it shows which events, above"
	}
	return append([]Finding{{Stream: "", Problem: what}}, out...), nil
}

// unsignedFor is how long a log may be without a checkpoint: a service signs one a
// minute, and the first one sooner. For a log of an older version the time counts from
// the event that binds the key.
const unsignedFor = 2 * time.Minute

// findUnproved adds the findings that weaken or prevent the proof.
func (c *Check) findUnproved(ctx context.Context) error {
	if n := c.forged - maxPlaces; n > 0 {
		c.find("", "and %d more events that are not proved to be this service's", n)
	}
	if is := KeyHash(c.verifier); c.bound.Key != "" && c.bound.Key != is {
		c.find("", "the signing key was made anew: the log is bound to the key with SHA-256 %s…, and checkpoints are signed by %s…; "+
			"what was before is proved by checkpoints of the first one only (humanqa audit accept)", c.bound.Key[:16], is[:16])
	}
	count, err := pgpool.One[struct{ Stored, Upto, Signed, Size int64 }](ctx, c.db, "the number of checkpoints", countedSQL)
	if err != nil {
		return err
	}
	if count.Stored < count.Signed {
		c.find("", "the database has %d checkpoints, up to %d events; %d were signed, up to %d", count.Stored, count.Upto,
			count.Signed, count.Size)
	}
	if old := c.signer.now().Sub(c.bound.Since); c.bound.Key != "" && c.Signed == 0 && count.Stored == 0 && old > unsignedFor {
		c.find("", "the log is to be signed since %s and has no checkpoint: nothing proves it (a service that runs signs one a minute)",
			old.Truncate(time.Second))
	}
	return nil
}

const countedSQL = `
SELECT (SELECT count(*) FROM audit.checkpoints) AS stored, (SELECT coalesce(max(size), 0) FROM audit.checkpoints) AS upto,
       coalesce(sum(signed), 0)::bigint AS signed, coalesce(sum(signed_size), 0)::bigint AS size
FROM audit.keys`

func (c *Check) treeAt(ctx context.Context, size int64) (tlog.Hash, error) {
	if size > c.size {
		return tlog.Hash{}, fmt.Errorf("the tree has %d leaves", c.size)
	}
	return c.tree.Root(ctx, size)
}

// inner checks that the tree's upper tiles derive from its leaves.
func (c *Check) inner(ctx context.Context) error {
	if c.size == 0 {
		return nil
	}
	root, err := c.tree.Root(ctx, c.size)
	if err != nil {
		return err
	}
	if c.hashed.size != c.size || root != c.hashed.root() {
		return fmt.Errorf("the tree's upper hashes are not those of its %d leaves: humanqa projections rebuild %s", c.size, Name)
	}
	return nil
}
