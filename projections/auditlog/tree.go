package auditlog

import (
	"context"
	"fmt"
	"sort"

	"github.com/google/uuid"
	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"
	"golang.org/x/mod/sumdb/tlog"

	"humanqa/domain"
	"humanqa/internal/pgpool"
	"humanqa/projections/readmodel"
)

// Tree reads the tree through the views in schema readmodel. The tree only grows at its
// right edge. So all reads for one size are consistent, however many statements they take
// and whatever is appended meanwhile.
type Tree struct{ db sqlx.ExtContext }

// NewTree reads from a pool, or from a transaction.
func NewTree(db sqlx.ExtContext) Tree { return Tree{db} }

const sizeSQL = `
SELECT index, octet_length(hashes) / 32 AS width
FROM readmodel.tree_tiles
WHERE level = 0
ORDER BY index DESC
LIMIT 1`

// Size is how many leaves the tree has.
func (t Tree) Size(ctx context.Context) (int64, error) {
	last, _, err := pgpool.Find[struct{ Index, Width int64 }](ctx, t.db, "the tree's size", sizeSQL)
	return last.Index*tileWidth + last.Width, err
}

// Root is the hash of the tree's first size leaves.
func (t Tree) Root(ctx context.Context, size int64) (tlog.Hash, error) {
	root, err := tlog.TreeHash(size, t.hashes(ctx))
	if err != nil {
		return tlog.Hash{}, fmt.Errorf("hash the tree of %d leaves: %w", size, err)
	}
	return root, nil
}

// Inclusion proves that the leaf is one of the first size.
func (t Tree) Inclusion(ctx context.Context, size, index int64) (tlog.RecordProof, error) {
	proof, err := tlog.ProveRecord(size, index, t.hashes(ctx))
	if err != nil {
		return nil, fmt.Errorf("prove leaf %d of %d: %w", index, size, err)
	}
	return proof, nil
}

// frontier gives the right edge of the tree's first size leaves.
func (t Tree) frontier(ctx context.Context, size int64) (frontier, error) {
	var indexes []int64
	first := int64(0)
	for level := 62; level >= 0; level-- {
		if leaves := int64(1) << level; size&leaves != 0 {
			indexes = append(indexes, tlog.StoredHashIndex(level, first>>level))
			first += leaves
		}
	}
	roots, err := t.hashes(ctx).ReadHashes(indexes)
	if err != nil {
		return frontier{}, fmt.Errorf("read the edge of the tree of %d leaves: %w", size, err)
	}
	return frontier{size, roots}, nil
}

const tilesSQL = `
SELECT t.level, t.index, t.hashes
FROM unnest($1::integer[], $2::bigint[]) AS wanted (level, index)
JOIN readmodel.tree_tiles t USING (level, index)`

// hashes gives the tree's stored hashes, in one query however many are asked for.
func (t Tree) hashes(ctx context.Context) tlog.HashReader {
	return tlog.HashReaderFunc(func(indexes []int64) ([]tlog.Hash, error) {
		type place struct {
			level int
			index int64
		}
		wanted := map[place][]byte{}
		var levels, numbers []int64
		for _, i := range indexes {
			of := tlog.TileForIndex(tileHeight, i)
			p := place{of.L, of.N}
			if _, seen := wanted[p]; !seen {
				wanted[p] = nil
				levels, numbers = append(levels, int64(of.L)), append(numbers, of.N)
			}
		}
		found, err := pgpool.List[tile](ctx, t.db, "tiles", tilesSQL, pq.Array(levels), pq.Array(numbers))
		if err != nil {
			return nil, err
		}
		for _, f := range found {
			wanted[place{f.Level, f.Index}] = f.Hashes
		}
		out := make([]tlog.Hash, len(indexes))
		for i, index := range indexes {
			of := tlog.TileForIndex(tileHeight, index)
			h, err := tlog.HashFromTile(of, wanted[place{of.L, of.N}], index)
			if err != nil {
				return nil, fmt.Errorf("tile %d of level %d is short or gone: rebuild the tree (humanqa projections rebuild %s): %w", of.N,
					of.L, Name, err)
			}
			out[i] = h
		}
		return out, nil
	})
}

// leafRow is a row of tree_leaves. Its sums are bytes as they are read, and texts (bytea)
// as they are written.
type leafRow struct {
	Index    int64     `db:"index" json:"index"`
	Commit   uint64    `db:"commit_position" json:"commit_position"`
	Prepare  uint64    `db:"prepare_position" json:"prepare_position"`
	Revision uint64    `db:"revision" json:"revision"`
	Created  int64     `db:"created" json:"created"`
	ID       uuid.UUID `db:"id" json:"id"`
	Stream   string    `db:"stream" json:"stream"`
	Type     string    `db:"type" json:"type"`
	Data     string    `db:"data" json:"data"`
	Metadata string    `db:"metadata" json:"metadata"`
	IsJSON   bool      `db:"is_json" json:"is_json"`
}

func (r leafRow) leaf() Leaf {
	l := Leaf{
		Index: r.Index, Position: domain.Position{Commit: r.Commit, Prepare: r.Prepare},
		Stream: r.Stream, Revision: r.Revision, Type: r.Type, ID: r.ID, Created: fromTicks(r.Created),
		Binary: !r.IsJSON,
	}
	copy(l.Data[:], r.Data)
	copy(l.Meta[:], r.Metadata)
	return l
}

func (l Leaf) row() leafRow {
	return leafRow{
		Index: l.Index, Commit: l.Position.Commit, Prepare: l.Position.Prepare, Revision: l.Revision, Created: ticks(l.Created),
		ID: l.ID, Stream: l.Stream, Type: l.Type, Data: bytea(l.Data[:]), Metadata: bytea(l.Meta[:]), IsJSON: !l.Binary,
	}
}

var leafColumns = readmodel.Columns[leafRow]("")

var leavesSQL = `
SELECT ` + leafColumns + `
FROM readmodel.tree_leaves
WHERE index >= $1
  AND index < $2
ORDER BY index`

// leaves gives a range of the tree's leaves.
func (t Tree) leaves(ctx context.Context, from, to int64) ([]Leaf, error) {
	rows, err := pgpool.List[leafRow](ctx, t.db, fmt.Sprintf("the leaves behind %d", from), leavesSQL, from, to)
	out := make([]Leaf, len(rows))
	for i, r := range rows {
		out[i] = r.leaf()
	}
	return out, err
}

// search finds the first leaf with a property that all later leaves have, too. Without one
// it gives the tree's size.
func (t Tree) search(ctx context.Context, has func(Leaf) bool) (int64, error) {
	size, err := t.Size(ctx)
	found := sort.Search(int(size), func(i int) bool {
		if err != nil {
			return true
		}
		leaves, lookErr := t.leaves(ctx, int64(i), int64(i)+1)
		err = lookErr
		return err != nil || len(leaves) == 0 || has(leaves[0])
	})
	return int64(found), err
}

const nextSQL = `
SELECT l.index
FROM readmodel.tree_leaves l
WHERE l.index >= $3
  AND (l.stream = $2 OR EXISTS (
      SELECT 1
      FROM readmodel.event_streams s
      WHERE s.stream = l.stream
        AND s.account_id = $1))
ORDER BY l.index
LIMIT 1`

// next finds the first event of an account from an index on. Without one it gives the
// tree's size.
func (t Tree) next(ctx context.Context, accountID string, index int64) (int64, error) {
	next, found, err := pgpool.Find[int64](ctx, t.db, "the next event of "+accountID, nextSQL, accountID, domain.AccountStream(accountID), index)
	if err == nil && !found {
		return t.Size(ctx)
	}
	return next, err
}

// The condition that every index is from 0 on is for the planner. It knows that index
// follows the table's order, so it expects that the Bloom filters leave little of the
// table. For a condition on the id alone it would expect matches anywhere.
var leafByIDSQL = `
SELECT ` + leafColumns + `
FROM readmodel.tree_leaves
WHERE id = $1
  AND index >= 0
ORDER BY index
LIMIT 1`

// Find gives the leaf of an event.
func (t Tree) Find(ctx context.Context, id uuid.UUID) (l Leaf, found bool, err error) {
	row, found, err := pgpool.Find[leafRow](ctx, t.db, "the leaf of "+id.String(), leafByIDSQL, id)
	if err != nil || !found {
		return Leaf{}, false, err
	}
	return row.leaf(), true, nil
}

const tileSQL = `
SELECT hashes
FROM readmodel.tree_tiles
WHERE level = 0
  AND index = $1`

// leafHashes gives the hashes of one tile's leaves, none if it is not there.
func (t Tree) leafHashes(ctx context.Context, index int64) ([]byte, error) {
	hashes, _, err := pgpool.Find[[]byte](ctx, t.db, fmt.Sprintf("tile %d", index), tileSQL, index)
	return hashes, err
}
