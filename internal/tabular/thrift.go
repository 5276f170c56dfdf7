package tabular

import "encoding/binary"

// thrift writes a struct in Thrift's compact protocol, in which Parquet describes
// itself. Fields come in the order of their numbers.
type thrift struct {
	out  []byte
	last int // the field that was written last
}

// Types of the compact protocol.
const (
	thriftTrue   = 1
	thriftFalse  = 2
	thriftI8     = 3
	thriftI32    = 5
	thriftI64    = 6
	thriftBinary = 8
	thriftList   = 9
	thriftStruct = 12
)

// field begins one. No number lies more than 15 behind the one before.
func (t *thrift) field(id int, of byte) {
	t.out = append(t.out, byte((id-t.last)<<4)|of)
	t.last = id
}

func (t *thrift) truth(id int, is bool) {
	if is {
		t.field(id, thriftTrue)
	} else {
		t.field(id, thriftFalse)
	}
}

func (t *thrift) small(id int, n byte) {
	t.field(id, thriftI8)
	t.out = append(t.out, n)
}

func (t *thrift) number(id int, n int64) {
	t.field(id, thriftI32)
	t.bare(n)
}

func (t *thrift) long(id int, n int64) {
	t.field(id, thriftI64)
	t.bare(n)
}

func (t *thrift) text(id int, s string) {
	t.field(id, thriftBinary)
	t.bareText(s)
}

// object writes a struct as a field.
func (t *thrift) object(id int, fill func(*thrift)) {
	t.field(id, thriftStruct)
	t.bareObject(fill)
}

func (t *thrift) objects(id int, fill []func(*thrift)) {
	t.list(id, thriftStruct, len(fill))
	for _, f := range fill {
		t.bareObject(f)
	}
}

// list begins one, whose entries follow bare.
func (t *thrift) list(id int, of byte, length int) {
	t.field(id, thriftList)
	if length < 15 {
		t.out = append(t.out, byte(length)<<4|of)
		return
	}
	t.out = binary.AppendUvarint(append(t.out, 0xF0|of), uint64(length))
}

func (t *thrift) bare(n int64) { t.out = binary.AppendVarint(t.out, n) }

func (t *thrift) bareText(s string) {
	t.out = append(binary.AppendUvarint(t.out, uint64(len(s))), s...)
}

func (t *thrift) bareObject(fill func(*thrift)) {
	inner := thrift{out: t.out}
	fill(&inner)
	inner.end()
	t.out = inner.out
}

func (t *thrift) end() { t.out = append(t.out, 0) }
