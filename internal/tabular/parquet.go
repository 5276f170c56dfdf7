package tabular

import (
	"encoding/binary"
	"fmt"
	"io"
	"time"

	"github.com/klauspost/compress/s2"
)

// Parquet as https://parquet.apache.org/docs/file-format/ has it, as far as a flat
// table needs it: every column is optional and plain, a page a column and group of
// rows, compressed by Snappy. The library that reads it back in the tests would be a
// tenth of a cold build.

// rowGroup is how many rows of a Parquet file are in memory at a time.
const rowGroup = 10_000

const parquetMagic = "PAR1"

// Numbers of the format's enumerations.
const (
	parquetBoolean   = 0 // Type
	parquetInt64     = 2
	parquetByteArray = 6
	parquetOptional  = 1 // FieldRepetitionType
	parquetPlain     = 0 // Encoding
	parquetRLE       = 3
	parquetSnappy    = 1 // CompressionCodec
)

func (k Kind) parquetType() int64 {
	switch k {
	case Number, Moment:
		return parquetInt64
	case Truth:
		return parquetBoolean
	case Text:
	}
	return parquetByteArray
}

// columnar keeps a group of rows, column by column.
type columnar struct {
	w       io.Writer
	written int64
	columns []Column
	chunks  []chunk
	rows    int // of the group
	total   int64
	groups  []func(*thrift)
}

// chunk is a column of the group.
type chunk struct {
	present []bool
	truths  []bool
	values  []byte // plain; but for truths, whose are packed at the end
}

func newParquet(w io.Writer, columns []Column) *columnar {
	return &columnar{w: w, columns: columns, chunks: make([]chunk, len(columns))}
}

func (c *columnar) Write(row []any) error {
	for i := range c.columns {
		if err := c.chunks[i].add(row[i]); err != nil {
			return fmt.Errorf("write %s: %w", c.columns[i].Name, err)
		}
	}
	if c.rows++; c.rows < rowGroup {
		return nil
	}
	return c.flush()
}

func (c *chunk) add(value any) error {
	c.present = append(c.present, value != nil)
	switch v := value.(type) {
	case nil:
	case string:
		c.values = append(binary.LittleEndian.AppendUint32(c.values, uint32(len(v))), v...) //nolint:gosec // no text has 4 GB
	case int64:
		c.values = binary.LittleEndian.AppendUint64(c.values, uint64(v)) //nolint:gosec // the same bits
	case time.Time:
		c.values = binary.LittleEndian.AppendUint64(c.values, uint64(v.UnixMilli())) //nolint:gosec // the same bits
	case bool:
		c.truths = append(c.truths, v)
	default:
		return fmt.Errorf("a cell holds a %T", value)
	}
	return nil
}

// page is the chunk's data page: which values are there, and those that are.
func (c *chunk) page() []byte {
	levels := packed(c.present)
	// One run of groups of eight (RLE/bit-packing hybrid, a bit wide).
	run := binary.AppendUvarint(nil, uint64(len(levels))<<1|1)
	out := binary.LittleEndian.AppendUint32(nil, uint32(len(run)+len(levels))) //nolint:gosec // of one group
	out = append(append(out, run...), levels...)
	return append(append(out, c.values...), packed(c.truths)...)
}

// packed puts eight into a byte, the first into its lowest bit.
func packed(bits []bool) []byte {
	out := make([]byte, (len(bits)+7)/8)
	for i, is := range bits {
		if is {
			out[i/8] |= 1 << (i % 8)
		}
	}
	return out
}

func (c *columnar) write(parts ...[]byte) error {
	for _, p := range parts {
		n, err := c.w.Write(p)
		c.written += int64(n)
		if err != nil {
			return err
		}
	}
	return nil
}

// flush writes a group of rows, and remembers where it is.
func (c *columnar) flush() error {
	if c.written == 0 {
		if err := c.write([]byte(parquetMagic)); err != nil {
			return err
		}
	}
	if c.rows == 0 {
		return nil
	}
	rows := int64(c.rows)
	var (
		size  int64
		metas []func(*thrift)
	)
	for i, column := range c.columns {
		data := c.chunks[i].page()
		stored := s2.EncodeSnappy(nil, data)
		var head thrift
		head.number(1, 0) // a data page
		head.number(2, int64(len(data)))
		head.number(3, int64(len(stored)))
		head.object(5, func(t *thrift) {
			t.number(1, rows)
			t.number(2, parquetPlain)
			t.number(3, parquetRLE)
			t.number(4, parquetRLE)
		})
		head.end()
		at := c.written
		if err := c.write(head.out, stored); err != nil {
			return err
		}
		plain := int64(len(head.out) + len(data))
		size += plain
		metas = append(metas, func(t *thrift) {
			t.long(2, at)
			t.object(3, func(t *thrift) {
				t.number(1, column.Kind.parquetType())
				t.list(2, thriftI32, 2)
				t.bare(parquetPlain)
				t.bare(parquetRLE)
				t.list(3, thriftBinary, 1)
				t.bareText(column.Name)
				t.number(4, parquetSnappy)
				t.long(5, rows)
				t.long(6, plain)
				t.long(7, int64(len(head.out)+len(stored)))
				t.long(9, at)
			})
		})
		c.chunks[i] = chunk{present: c.chunks[i].present[:0], truths: c.chunks[i].truths[:0], values: c.chunks[i].values[:0]}
	}
	c.groups = append(c.groups, func(t *thrift) {
		t.objects(1, metas)
		t.long(2, size)
		t.long(3, rows)
	})
	c.total, c.rows = c.total+rows, 0
	return nil
}

// Close writes the last group and what tells where all of them are.
func (c *columnar) Close() error {
	if err := c.flush(); err != nil {
		return err
	}
	var foot thrift
	foot.number(1, 1)
	foot.objects(2, c.schema())
	foot.long(3, c.total)
	foot.objects(4, c.groups)
	foot.text(6, "humanqa")
	foot.end()
	size := binary.LittleEndian.AppendUint32(nil, uint32(len(foot.out))) //nolint:gosec // some hundred bytes a group
	return c.write(foot.out, size, []byte(parquetMagic))
}

// schema is the root and its columns.
func (c *columnar) schema() []func(*thrift) {
	elements := []func(*thrift){func(t *thrift) {
		t.text(4, "table")
		t.number(5, int64(len(c.columns)))
	}}
	for _, column := range c.columns {
		elements = append(elements, func(t *thrift) {
			t.number(1, column.Kind.parquetType())
			t.number(3, parquetOptional)
			t.text(4, column.Name)
			switch column.Kind {
			case Text:
				t.number(6, 0) // UTF8, for readers that are older than logical types
				t.object(10, func(t *thrift) { t.object(1, nothing) })
			case Moment:
				t.number(6, 9) // TIMESTAMP_MILLIS
				t.object(10, func(t *thrift) {
					t.object(8, func(t *thrift) {
						t.truth(1, true)                                      // UTC
						t.object(2, func(t *thrift) { t.object(1, nothing) }) // milliseconds
					})
				})
			case Number:
				t.number(6, 18) // INT_64
				t.object(10, func(t *thrift) {
					t.object(10, func(t *thrift) {
						t.small(1, 64)
						t.truth(2, true) // signed
					})
				})
			case Truth:
			}
		})
	}
	return elements
}

func nothing(*thrift) {}
