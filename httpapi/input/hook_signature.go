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
	const name = "deployHookSignature"
	v, there := o.Field(name)
	switch {
	case !there:
		return nil
	case v.IsNull():
		return &HookSigning{}
	}
	c, ok := o.Child(name)
	if !ok {
		return nil
	}
	in := &HookSigning{Scheme: c.RequiredOneOf("scheme", project.HookSchemes()...), Secret: c.Required("secret", maxHookSecret)}
	if in.Secret != "" && (len(in.Secret) < minHookSecret || !Printable(in.Secret) || strings.TrimSpace(in.Secret) != in.Secret) {
		c.Wrong("secret", "must be %d to %d printable ASCII characters, as at the platform", minHookSecret, maxHookSecret)
	}
	return in
}
