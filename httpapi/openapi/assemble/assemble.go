// Package assemble makes the OpenAPI documents of the YAML files of httpapi/openapi. It
// runs before the build of the service (make openapi), and the service embeds the result.
// The code that reads YAML and knows schemas is as large as the whole API.
//
// The files leave out the parts that the API has in one place for every request: the
// request id, the credential, the rate limit, the faults. The function complete adds
// them to every operation.
package assemble

import (
	"io/fs"

	"github.com/getkin/kin-openapi/openapi3"
)

// Documents puts the files together, as OpenAPI 3.0 and as 3.1. The keys stay in the
// order they were written in, which is the order people read them in. payloads has the
// files that a value with the tag !payload names.
func Documents(files, payloads fs.FS) (v30, v31 []byte, err error) {
	if v30, err = document(files, payloads, webhooksAside); err != nil {
		return nil, nil, err
	}
	v31, err = document(files, payloads, modernise)
	return v30, v31, err
}

func document(files, payloads fs.FS, as func(*openapi3.T) error) ([]byte, error) {
	from, err := read(files, payloads)
	if err != nil {
		return nil, err
	}
	if err := complete(from.doc); err != nil {
		return nil, err
	}
	if err := as(from.doc); err != nil {
		return nil, err
	}
	return from.order.marshal(from.doc)
}
