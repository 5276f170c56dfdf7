package store

import (
	"encoding/binary"

	"github.com/lib/pq/oid"
)

// newArray begins an array of n elements in Postgres' binary form, which the driver sends as
// it is. As text, bytes would have twice their size, and be written and read digit by digit.
func newArray(element oid.Oid, n, bytes int) []byte {
	b := make([]byte, 0, 20+4*n+bytes)
	for _, v := range []uint32{1, 0, uint32(element), uint32(n), 1} {
		b = binary.BigEndian.AppendUint32(b, v)
	}
	return b
}

func addElement[V string | []byte](array []byte, value V) []byte {
	return append(binary.BigEndian.AppendUint32(array, uint32(len(value))), value...)
}

func addNumber(array []byte, value int64) []byte {
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint32(array, 8), uint64(value))
}
