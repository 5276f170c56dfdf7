package input

import (
	"strings"

	"humanqa/domain/project"
	"humanqa/httpapi/wire"
)

const (
	minHookSecret = 8
	maxHookSecret = 256
)

// HookSigning is a change of the signature that calls of a deploy hook need. An empty Scheme
// needs none.
type HookSigning struct{ Scheme, Secret string }

// HookSignature reads the change; nil: none. The secret is a platform's, and no error repeats
// it.
func HookSignature(o wire.Object) *HookSigning {
	return removable(o, "deployHookSignature", func(c wire.Object) HookSigning {
		in := HookSigning{Scheme: c.RequiredOneOf("scheme", project.HookSchemes()...), Secret: c.Required("secret", maxHookSecret)}
		if in.Secret != "" && (len(in.Secret) < minHookSecret || !Printable(in.Secret) || strings.TrimSpace(in.Secret) != in.Secret) {
			c.Wrong("secret", "must be %d to %d printable ASCII characters, as at the platform", minHookSecret, maxHookSecret)
		}
		return in
	})
}

// removable reads an object that null removes, which gives the zero T; nil: there is none.
func removable[T any](o wire.Object, name string, read func(wire.Object) T) *T {
	v, there := o.Field(name)
	if there && v.IsNull() {
		return new(T)
	}
	if c, ok := o.Child(name); ok {
		return new(read(c))
	}
	return nil
}
