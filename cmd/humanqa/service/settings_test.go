package service

import (
	"testing"

	"github.com/caarlos0/env/v11"

	"humanqa/internal/testing/must"
)

func TestEverySettingIsTold(t *testing.T) {
	t.Parallel()
	fields, err := env.GetFieldParams(&environment{})
	must.NoError(t, err)
	told := Settings()
	if len(told) != len(fields) {
		t.Fatalf("%d settings are told, there are %d", len(told), len(fields))
	}
	for i, f := range fields {
		if told[i].Name != f.Key || told[i].About == "" || f.DefaultValue != "" && told[i].Value != f.DefaultValue {
			t.Errorf("%s is told as %+v, its default is %q", f.Key, told[i], f.DefaultValue)
		}
	}
}
