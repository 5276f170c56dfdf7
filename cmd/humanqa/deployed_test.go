package main

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"humanqa/cmd/humanqa/service"
	"humanqa/internal/testing/must"
)

const deployment = "../../deploy"

var (
	settingName = regexp.MustCompile(`HUMANQA_[A-Z_]+`)
	// ${NAME}, ${NAME:-default} or ${NAME:?what is wrong without}
	interpolated = regexp.MustCompile(`\$\{([A-Z_]+)(?::[-?]([^}]*))?\}`)
)

// ofCompose are names in the files that compose reads itself. A manifest's comment tells of the
// name that Kubernetes would add.
var ofCompose = []string{"HUMANQA_IMAGE", "HUMANQA_PORT", "HUMANQA_"}

func deployed(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(deployment, file))
	must.NoError(t, err)
	return string(text)
}

func TestEverySettingOfADeploymentExists(t *testing.T) {
	t.Parallel()
	known := slices.Clone(ofCompose)
	for _, s := range service.Settings() {
		known = append(known, s.Name)
	}
	files, err := filepath.Glob(deployment + "/*/*")
	must.NoError(t, err)
	named := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		must.NoError(t, err)
		for _, name := range settingName.FindAllString(string(text), -1) {
			named++
			if !slices.Contains(known, name) {
				t.Errorf("%s names %s, which is no setting", file, name)
			}
		}
	}
	if named < 40 {
		t.Errorf("only %d settings found", named)
	}
}

// composed is a compose file as far as the service is concerned.
type composed struct {
	Services map[string]struct {
		Image       string
		Environment map[string]string
		ReadOnly    bool `yaml:"read_only"`
	}
}

// Each process of a compose file gets its settings as compose fills them in from the env file.
func TestTheServiceTakesTheSettingsOfEachComposeFile(t *testing.T) {
	t.Parallel()
	for file, roles := range map[string]map[string]string{
		"one-node": {"humanqa": "api,projector,webhooks,policy"},
		"cluster": {
			"api1": "api", "api2": "api", "worker1": "projector,webhooks,policy", "worker2": "projector,webhooks,policy",
		},
	} {
		env := map[string]string{}
		for line := range strings.Lines(deployed(t, "compose/"+file+".env")) {
			if name, value, found := strings.Cut(strings.TrimSpace(line), "="); found && !strings.HasPrefix(line, "#") {
				env[name] = strings.Trim(value, "'")
			}
		}
		filled := interpolated.ReplaceAllStringFunc(deployed(t, "compose/"+file+".yaml"), func(use string) string {
			m := interpolated.FindStringSubmatch(use)
			value, asked := env[m[1]]
			if !asked {
				t.Errorf("%s.yaml reads %s, for which %s.env has no line", file, m[1], file)
			}
			if value == "" && strings.Contains(use, ":?") {
				value = "secret" // the operator writes one
			}
			return value
		})
		var c composed
		must.NoError(t, yaml.Unmarshal([]byte(filled), &c))
		for name, process := range c.Services {
			if strings.HasPrefix(process.Image, "humanqa:") != (roles[name] != "") {
				t.Errorf("%s: this test does not know the service %s with the image %s", file, name, process.Image)
			}
			if roles[name] != "" {
				takes(t, file+": "+name, process.Environment, roles[name])
			}
			if roles[name] != "" && !process.ReadOnly {
				t.Errorf("%s: the root of %s is not read-only", file, name)
			}
		}
	}
}

// takes parses the environment as a start does.
func takes(t *testing.T, where string, environment map[string]string, roles string) {
	t.Helper()
	var environ []string
	for name, value := range environment {
		environ = append(environ, name+"="+value)
	}
	cfg, err := service.ParseConfig(environ)
	if err != nil {
		t.Errorf("%s: %v", where, err)
	}
	if cfg.Roles.String() != roles || cfg.DatabaseURL == "" || cfg.BaseURL == "" {
		t.Errorf("%s runs %q with the database %q at %q", where, cfg.Roles, cfg.DatabaseURL, cfg.BaseURL)
	}
	if cfg.StopDelay == 0 && roles == "api" {
		t.Errorf("%s stops without a word to the proxy", where)
	}
}

// manifest is a document for Kubernetes, as far as the service is concerned.
type manifest struct {
	Kind     string
	Metadata struct{ Name string }
	Data     map[string]string
	Spec     struct {
		Replicas int
		Selector yaml.Node
		Template struct {
			Metadata struct{ Labels map[string]string }
			Spec     podSpec
		}
	}
}

type podSpec struct {
	TerminationGracePeriodSeconds int   `yaml:"terminationGracePeriodSeconds"`
	EnableServiceLinks            *bool `yaml:"enableServiceLinks"`
	SecurityContext               struct {
		RunAsNonRoot bool `yaml:"runAsNonRoot"`
		FSGroup      int  `yaml:"fsGroup"`
	} `yaml:"securityContext"`
	Containers []struct {
		Env            []struct{ Name, Value string }
		ReadinessProbe struct {
			HTTPGet struct{ Path string } `yaml:"httpGet"`
		} `yaml:"readinessProbe"`
		SecurityContext struct {
			ReadOnlyRootFilesystem   bool  `yaml:"readOnlyRootFilesystem"`
			AllowPrivilegeEscalation *bool `yaml:"allowPrivilegeEscalation"`
		} `yaml:"securityContext"`
	}
}

func TestTheServiceTakesTheSettingsOfKubernetes(t *testing.T) {
	t.Parallel()
	shared := map[string]string{ // of the secret
		"HUMANQA_DATABASE_URL": "postgres://humanqa:secret@postgres/humanqa", "HUMANQA_EVENTSTORE_URL": "esdb://admin:secret@log:2113",
	}
	kinds := map[string]int{}
	documents := yaml.NewDecoder(bytes.NewBufferString(deployed(t, "kubernetes/humanqa.yaml")))
	for {
		var m manifest
		if err := documents.Decode(&m); errors.Is(err, io.EOF) {
			break
		} else {
			must.NoError(t, err)
		}
		kinds[m.Kind]++
		for name, value := range m.Data {
			shared[name] = value // the ConfigMap comes first
		}
		if m.Kind != "Deployment" {
			continue
		}
		pod, container := m.Spec.Template.Spec, m.Spec.Template.Spec.Containers[0]
		environment := map[string]string{}
		for name, value := range shared {
			environment[name] = value
		}
		for _, e := range container.Env {
			environment[e.Name] = e.Value
		}
		roles := map[string]string{"humanqa-api": "api", "humanqa-workers": "projector,webhooks,policy"}
		takes(t, m.Metadata.Name, environment, roles[m.Metadata.Name])
		switch {
		case m.Spec.Replicas < 2, pod.TerminationGracePeriodSeconds < 90, container.ReadinessProbe.HTTPGet.Path != "/readyz":
			t.Errorf("%s: a restart would lose requests", m.Metadata.Name)
		case pod.EnableServiceLinks == nil || *pod.EnableServiceLinks:
			t.Errorf("%s: Kubernetes would add HUMANQA_PORT and others", m.Metadata.Name)
		case !pod.SecurityContext.RunAsNonRoot, pod.SecurityContext.FSGroup == 0, !container.SecurityContext.ReadOnlyRootFilesystem,
			container.SecurityContext.AllowPrivilegeEscalation == nil || *container.SecurityContext.AllowPrivilegeEscalation:
			t.Errorf("%s has more rights than the image needs", m.Metadata.Name)
		}
	}
	if kinds["Deployment"] != 2 || kinds["Service"] != 1 || kinds["PodDisruptionBudget"] != 2 || kinds["ConfigMap"] != 1 {
		t.Errorf("the manifest holds %v", kinds)
	}
}
