package auditlog

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jmoiron/sqlx"
	"golang.org/x/mod/sumdb/tlog"

	"humanqa/domain"
	"humanqa/eventstore"
	"humanqa/eventstore/consumer"
	"humanqa/projections/readmodel"
)

// Name is the projector's name among the consumers of the log.
const Name = "audit"

// tileHeight makes tiles of 256 hashes: a row of tree_tiles.
const (
	tileHeight = 8
	tileWidth  = 1 << tileHeight
)

// Projector folds the log into the tree.
type Projector struct{}

var (
	_ consumer.Projector   = Projector{}
	_ consumer.Lazy        = Projector{}
	_ consumer.RawConsumer = Projector{}
)

// Name implements consumer.Consumer.
func (Projector) Name() string { return Name }

// Version implements consumer.Projector.
func (Projector) Version() int { return 3 }

// Handles implements consumer.Consumer; as a RawConsumer it sees all others too.
func (Projector) Handles() []string { return eventstore.Types() }

// RawConsumer implements consumer.RawConsumer.
func (Projector) RawConsumer() {}

// Gather implements consumer.Lazy: no answer needs the tree right after a write, and a
// checkpoint is signed once a minute.
func (Projector) Gather() time.Duration { return 250 * time.Millisecond }

// Tables implements consumer.Projector.
func (Projector) Tables() []consumer.Table {
	return []consumer.Table{{Name: "tree_leaves", DDL: treeLeavesDDL}, {Name: "tree_tiles", DDL: treeTilesDDL}}
}

// The table has the bound facts of each leaf, and the position of its event. Only a proof
// looks an id up, which is rare, so the index must cost the writer nothing. It is a Bloom
// filter for each 64 pages, made by autovacuum once they are full. A B-tree of random ids
// would cost five times as much as the rest of a row. The filters stand after a minmax of
// index, which leads the planner to them (leafByIDSQL). An empty table has a filter for
// its first pages, and each new row would write that whole filter anew. The last
// statement leaves this filter to autovacuum.
const treeLeavesDDL = `
CREATE TABLE {schema}.tree_leaves (
    index            bigint PRIMARY KEY,
    commit_position  bigint NOT NULL,
    prepare_position bigint NOT NULL,
    revision         bigint NOT NULL,
    created          bigint NOT NULL, -- 100 ns since 1970
    id               uuid NOT NULL,
    stream           text NOT NULL,
    type             text NOT NULL,
    data             bytea NOT NULL,  -- SHA-256
    metadata         bytea NOT NULL,  -- SHA-256
    is_json          boolean NOT NULL
);
CREATE INDEX tree_leaves_ids ON {schema}.tree_leaves USING brin (index, id uuid_bloom_ops (n_distinct_per_range = 3000))
    WITH (pages_per_range = 64, autosummarize = on);
SELECT brin_desummarize_range('{schema}.tree_leaves_ids', 0);
`

// Row (level, index) holds the hashes index*256 and on of the tree's level
// 8*level, without a gap; only the last row of a level may be short.
const treeTilesDDL = `
CREATE TABLE {schema}.tree_tiles (
    level  integer NOT NULL,
    index  bigint NOT NULL,
    hashes bytea NOT NULL,
    PRIMARY KEY (level, index)
);
ALTER TABLE {schema}.tree_tiles ALTER COLUMN hashes SET STORAGE EXTERNAL; -- hashes do not get smaller
`

// A tree of 64 levels has eight levels of tiles.
const maxLevel = 7

// With the number of levels as a parameter of VALUES, Postgres would plan the query anew
// each time.
const edgeSQL = `
SELECT t.level, t.index, t.hashes
FROM (VALUES (0), (1), (2), (3), (4), (5), (6), (7)) AS levels (level)
CROSS JOIN LATERAL (
    SELECT level, index, hashes
    FROM {schema}.tree_tiles
    WHERE level = levels.level
    ORDER BY index DESC
    LIMIT 1) t
WHERE levels.level <= $1
ORDER BY t.level`

// Apply implements consumer.Projector: it grows the tree at its right edge.
func (Projector) Apply(ctx context.Context, tx *sqlx.Tx, schema string, batch []domain.Recorded) error {
	e, err := loadEdge(ctx, tx, schema)
	if err != nil {
		return err
	}
	leaves := make([]leafRow, len(batch))
	for i, r := range batch {
		l := leafOf(r)
		l.Index = e.size()
		leaves[i] = l.row()
		e.add(0, l.Hash())
	}
	return readmodel.Run(ctx, tx, schema,
		readmodel.Append("tree_leaves", leaves),
		readmodel.Upsert("tree_tiles", e.changed(), "level", "index"),
	)
}

// edge is the last tile of each level, and what has changed since it was loaded.
type edge struct {
	tiles []tile
	full  []tile // changed, and never again
}

type tile struct {
	Level   int    `json:"level"`
	Index   int64  `json:"index"`
	Hashes  hashes `json:"hashes"`
	changed bool
}

// hashes are read as bytes, and written as a text.
type hashes []byte

func (h hashes) MarshalJSON() ([]byte, error) { return json.Marshal(bytea(h)) }

// bytea is how Postgres reads bytes in a text.
func bytea(b []byte) string { return `\x` + hex.EncodeToString(b) }

func (t tile) width() int { return len(t.Hashes) / tlog.HashSize }

func loadEdge(ctx context.Context, tx *sqlx.Tx, schema string) (*edge, error) {
	var e edge
	if err := tx.SelectContext(ctx, &e.tiles, consumer.In(schema, edgeSQL), maxLevel); err != nil {
		return nil, fmt.Errorf("read the tree's edge: %w", err)
	}
	for level, t := range e.tiles {
		if t.Level != level || len(t.Hashes)%tlog.HashSize != 0 || t.width() > tileWidth {
			return nil, fmt.Errorf("the tree's edge is damaged at level %d: rebuild it (humanqa projections rebuild %s)", level, Name)
		}
	}
	return &e, nil
}

func (e *edge) size() int64 {
	if len(e.tiles) == 0 {
		return 0
	}
	return e.tiles[0].Index*tileWidth + int64(e.tiles[0].width())
}

// add puts a hash at the end of a level. The root of a full tile goes one level up.
func (e *edge) add(level int, h tlog.Hash) {
	if level == len(e.tiles) {
		e.tiles = append(e.tiles, tile{Level: level})
	}
	t := &e.tiles[level]
	if t.width() == tileWidth {
		*t = tile{Level: level, Index: t.Index + 1}
	}
	t.Hashes, t.changed = append(t.Hashes, h[:]...), true
	if t.width() < tileWidth {
		return
	}
	e.full = append(e.full, *t)
	t.changed = false
	var f frontier
	for i := range tileWidth {
		f.add(tlog.Hash(t.Hashes[i*tlog.HashSize:]))
	}
	e.add(level+1, f.root())
}

// changed are the tiles to write.
func (e *edge) changed() []tile {
	tiles := e.full
	for _, t := range e.tiles {
		if t.changed {
			tiles = append(tiles, t)
		}
	}
	return tiles
}
