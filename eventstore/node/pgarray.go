package node

import "encoding/binary"

// A group travels to Postgres as one array per column, in the binary format of
// array_recv. Text arrays would double the bytes (hex) and cost both sides the
// quoting; with binary_parameters lib/pq passes []byte through untouched.

// Type oids of the array elements; fixed for all versions of Postgres.
const (
	oidBool  = 16
	oidBytea = 17
	oidInt8  = 20
	oidText  = 25
	oidUUID  = 2950
)

type arrayEncoder struct {
	buf []byte
}

// begin starts a one-dimensional array without NULLs.
func (a *arrayEncoder) begin(oid uint32, n int) {
	a.buf = a.buf[:0]
	a.buf = binary.BigEndian.AppendUint32(a.buf, 1) // dimensions
	a.buf = binary.BigEndian.AppendUint32(a.buf, 0) // no NULLs
	a.buf = binary.BigEndian.AppendUint32(a.buf, oid)
	a.buf = binary.BigEndian.AppendUint32(a.buf, uint32(n))
	a.buf = binary.BigEndian.AppendUint32(a.buf, 1) // lower bound
}

func (a *arrayEncoder) bytes(v []byte) {
	a.buf = binary.BigEndian.AppendUint32(a.buf, uint32(len(v)))
	a.buf = append(a.buf, v...)
}

func (a *arrayEncoder) text(v string) {
	a.buf = binary.BigEndian.AppendUint32(a.buf, uint32(len(v)))
	a.buf = append(a.buf, v...)
}

func (a *arrayEncoder) int8(v int64) {
	a.buf = binary.BigEndian.AppendUint32(a.buf, 8)
	a.buf = binary.BigEndian.AppendUint64(a.buf, uint64(v))
}

func (a *arrayEncoder) bool(v bool) {
	b := byte(0)
	if v {
		b = 1
	}
	a.buf = append(a.buf, 0, 0, 0, 1, b)
}

// encodeTexts is a text[] in wire format.
func encodeTexts(values []string) []byte {
	var a arrayEncoder
	a.begin(oidText, len(values))
	for _, v := range values {
		a.text(v)
	}
	return a.buf
}

// shrink lets go of the buffer one large group left behind.
func (a *arrayEncoder) shrink() {
	if cap(a.buf) > 1<<20 {
		a.buf = nil
	}
}
