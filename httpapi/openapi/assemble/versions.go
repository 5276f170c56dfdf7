package assemble

import (
	"slices"

	"github.com/getkin/kin-openapi/openapi3"
)

// webhooksAside makes an extension of the webhooks, which OpenAPI 3.0 has no
// place for.
func webhooksAside(doc *openapi3.T) error {
	doc.Extensions["x-webhooks"] = doc.Webhooks
	doc.Webhooks = nil
	return nil
}

// modernise makes OpenAPI 3.1 of the document: null is a type there, and a
// schema has several examples.
func modernise(doc *openapi3.T) error {
	doc.OpenAPI = "3.1.1"
	return doc.WalkSchemas(func(_ string, ref *openapi3.SchemaRef) error {
		s := ref.Value
		if s.Nullable {
			types := append(slices.Clone(s.Type.Slice()), openapi3.TypeNull)
			s.Type, s.Nullable = (*openapi3.Types)(&types), false
		}
		if s.Example != nil {
			s.Examples, s.Example = []any{s.Example}, nil
		}
		return nil
	})
}
