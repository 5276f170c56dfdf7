package domain

import "strings"

// ErasedText stands in the place of a text whose subject was erased (decisions, "Erasure of
// one subject").
const ErasedText = "[erased]"

// HiddenText stands in the place of a text that is not shown: a secret, or a text whose key
// was lost.
const HiddenText = "[sealed]"

// Erased gives the text after the erasure of its subject.
func Erased(text string) string {
	if text == "" {
		return ""
	}
	return ErasedText
}

// OrderOfErasure refuses the order of an erasure without an operator's name or a reason.
func OrderOfErasure(by, reason string) error {
	var wrong Wrong
	wrong.AddIf(strings.TrimSpace(by) == "", "by", "must not be blank")
	wrong.AddIf(strings.TrimSpace(reason) == "", "reason", "must not be blank")
	return wrong.Refusal()
}
