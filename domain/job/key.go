package job

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"

	"humanqa/domain/identity"
)

// A longer key is cut, and a hash makes it distinct from keys with the same beginning.
const maxDerivedKey = 60

// KeyFor derives an item's key from its description, so that the same item is known again
// in the project's next test: "Log in works." and "log in  works" have one key. It is a
// hash, so a key reveals nothing of an erased text.
func KeyFor(description string) string { return hashed(identity.Text(description)) }

func hashed(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "item-" + hex.EncodeToString(sum[:8])
}

// OlderKeys gives the keys that older versions derived from the description. An item that
// its project knows by such a key keeps it.
func OlderKeys(description string) (keys []string) {
	for _, text := range identity.OlderTexts(description) {
		keys = append(keys, hashed(text), readable(text))
	}
	return keys
}

// ReadableKey derives a key of words. The catalogue's own items have such keys. Items of
// clients once had them, too. If the readable part loses more than case, blanks and
// punctuation, a hash follows it.
func ReadableKey(description string) string { return readable(identity.OlderTexts(description)[0]) }

func readable(text string) string {
	slug, lossy := slugOf(text)
	if !lossy {
		return slug
	}
	sum := sha256.Sum256([]byte(text))
	hash := hex.EncodeToString(sum[:4])
	return cmp.Or(slug, "item") + "-" + hash
}

// slugOf keeps the ASCII letters and digits; lossy says that anything else was
// dropped, or nothing is left.
func slugOf(text string) (slug string, lossy bool) {
	ascii := func(r rune) bool { return 'a' <= r && r <= 'z' || '0' <= r && r <= '9' }
	lossy = strings.ContainsFunc(text, func(r rune) bool { return r != ' ' && !ascii(r) })
	slug = strings.Join(strings.FieldsFunc(text, func(r rune) bool { return !ascii(r) }), "-")
	if len(slug) > maxDerivedKey {
		slug, lossy = strings.TrimRight(slug[:maxDerivedKey], "-"), true
	}
	return slug, lossy || slug == ""
}

// UniqueKeys gives the items, in a new slice, with a unique key each. An explicit key
// stays, an empty one is derived, and a key that is taken gets "-2", "-3" … Explicit keys
// are assigned first, so a derived key never takes an explicit one. The same list always
// gets the same keys.
func UniqueKeys(items []Item) []Item {
	keyed := slices.Clone(items)
	taken := make(map[string]bool, len(items))
	assign := func(i int, key string) {
		free := key
		for n := 2; taken[free]; n++ {
			free = key + "-" + strconv.Itoa(n)
		}
		taken[free] = true
		keyed[i].Key = free
	}
	var again []int // explicit, but taken by an earlier item
	for i, item := range items {
		switch {
		case item.Key == "":
		case taken[item.Key]:
			again = append(again, i)
		default:
			taken[item.Key] = true
		}
	}
	for _, i := range again {
		assign(i, items[i].Key)
	}
	for i, item := range items {
		if item.Key == "" {
			assign(i, KeyFor(item.Description))
		}
	}
	return keyed
}
