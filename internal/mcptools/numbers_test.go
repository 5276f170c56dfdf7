package mcptools

import (
	"reflect"
	"strings"
	"testing"
)

// An argument that is left out is no zero: zero bounds, and nothing does not.
func TestAnOptionalNumberOfAToolKnowsZeroFromNothing(t *testing.T) {
	t.Parallel()
	for _, in := range []any{target{}, testIn{}, jobIn{}, waitIn{}, answerIn{}, failuresIn{}, prepareIn{}, retestIn{}} {
		of := reflect.TypeOf(in)
		for _, field := range reflect.VisibleFields(of) {
			optional := strings.Contains(field.Tag.Get("json"), ",omitempty")
			if optional && (field.Type.Kind() == reflect.Int || field.Type.Kind() == reflect.Float64) {
				t.Errorf("%s.%s is 0 where it is left out", of.Name(), field.Name)
			}
		}
	}
}
