package domain

// ErasedText stands in the place of a text whose subject was erased (decisions, "Erasure of
// one subject").
const ErasedText = "[erased]"

// Erased is what becomes of a text with its subject.
func Erased(text string) string {
	if text == "" {
		return ""
	}
	return ErasedText
}
