package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"time"

	cyclonedx "github.com/CycloneDX/cyclonedx-go"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/goreleaser/nfpm/v2"
	_ "github.com/goreleaser/nfpm/v2/deb" // the formats
	"github.com/goreleaser/nfpm/v2/files"
	_ "github.com/goreleaser/nfpm/v2/rpm"
)

// entry is a file of an archive.
type entry struct {
	from, to string
	mode     int64
}

// archived gives the entries as a tar stream: no owner, no time but the commit's.
func archived(entries []entry, dirs []string, at time.Time) ([]byte, error) {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, dir := range dirs {
		h := &tar.Header{Typeflag: tar.TypeDir, Name: strings.TrimPrefix(dir, "/") + "/", Mode: 0o755, ModTime: at, Format: tar.FormatPAX}
		if dir == dataDir {
			h.Uid, h.Gid, h.Mode = userID, userID, 0o700
		}
		if err := w.WriteHeader(h); err != nil {
			return nil, err
		}
	}
	for _, e := range entries {
		body, err := os.ReadFile(e.from)
		if err != nil {
			return nil, err
		}
		h := &tar.Header{Name: strings.TrimPrefix(e.to, "/"), Mode: e.mode, Size: int64(len(body)), ModTime: at, Format: tar.FormatPAX}
		if err := w.WriteHeader(h); err != nil {
			return nil, err
		}
		if _, err := w.Write(body); err != nil {
			return nil, err
		}
	}
	err := w.Close()
	return out.Bytes(), err
}

// archive is the .tar.gz of a platform.
func (b *build) archive(work, licences string, p platform) error {
	dir := fmt.Sprintf("humanqa_%s_%s/", b.version, p)
	body, err := archived([]entry{
		{filepath.Join(work, "humanqa"), dir + "humanqa", 0o755}, {filepath.Join(work, "humanqa-parquet"), dir + "humanqa-parquet", 0o755},
		{filepath.Join(work, "hqa"), dir + "hqa", 0o755},
		{filepath.Join(b.root, "LICENSE"), dir + "LICENSE", 0o644}, {licences, dir + "THIRD_PARTY_LICENSES", 0o644},
		{filepath.Join(b.root, "CHANGELOG.md"), dir + "CHANGELOG.md", 0o644}, {filepath.Join(b.root, "docs/hqa.md"), dir + "hqa.md", 0o644},
		{filepath.Join(b.root, "docs/operations.md"), dir + "operations.md", 0o644},
	}, nil, b.commit)
	if err != nil {
		return err
	}
	var out bytes.Buffer
	w, err := gzip.NewWriterLevel(&out, gzip.BestCompression) // its header has no name and no time
	if err != nil {
		return err
	}
	if _, err := w.Write(body); err != nil {
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	return os.WriteFile(b.path("humanqa_%s_%s.tar.gz", b.version, p), out.Bytes(), 0o644)
}

// sbom says what is in a binary, by its own build information.
func (b *build) sbom(info *debug.BuildInfo, program string, p platform) error {
	component := func(kind cyclonedx.ComponentType, path, version string) cyclonedx.Component {
		url := "pkg:golang/" + path
		if version != "" {
			url += "@" + version
		}
		return cyclonedx.Component{Type: kind, BOMRef: url, Name: path, Version: version, PackageURL: url}
	}
	bom := cyclonedx.NewBOM()
	main := component(cyclonedx.ComponentTypeApplication, info.Path, b.version)
	bom.Metadata = &cyclonedx.Metadata{Timestamp: b.commit.Format(time.RFC3339), Component: &main}
	list := []cyclonedx.Component{component(cyclonedx.ComponentTypeLibrary, "stdlib", strings.TrimPrefix(goVersion(), "go"))}
	for _, m := range info.Deps {
		list = append(list, component(cyclonedx.ComponentTypeLibrary, m.Path, m.Version))
	}
	bom.Components = &list
	var out bytes.Buffer
	if err := cyclonedx.NewBOMEncoder(&out, cyclonedx.BOMFileFormatJSON).SetPretty(true).Encode(bom); err != nil {
		return err
	}
	return os.WriteFile(b.path("%s_%s_%s.cdx.json", program, b.version, p), out.Bytes(), 0o644)
}

const (
	dataDir = "/var/lib/humanqa"
	userID  = 10001
	// certificates is the package without which no HTTPS server is trusted: receivers of
	// webhooks, models, mail servers, and the service itself for its client.
	certificates = "ca-certificates"
)

// packages are the .deb or .rpm of both programs.
func (b *build) packages(work, licences string, p platform, format string) error {
	deploy := filepath.Join(b.root, "deploy/linux")
	docs := func(program string) files.Contents {
		dir := "/usr/share/doc/" + program + "/"
		return files.Contents{
			{Source: filepath.Join(b.root, "LICENSE"), Destination: dir + "copyright", FileInfo: b.info(0o644)},
			{Source: licences, Destination: dir + "THIRD_PARTY_LICENSES", FileInfo: b.info(0o644)},
			{Source: filepath.Join(work, program), Destination: "/usr/bin/" + program, FileInfo: b.info(0o755)},
		}
	}
	server := b.packageOf("humanqa", "Human QA Testing Service", p, append(docs("humanqa"),
		&files.Content{Source: filepath.Join(work, "humanqa-parquet"), Destination: "/usr/bin/humanqa-parquet", FileInfo: b.info(0o755)},
		&files.Content{Source: filepath.Join(deploy, "humanqa.service"), Destination: "/lib/systemd/system/humanqa.service", FileInfo: b.info(0o644)},
		&files.Content{Source: filepath.Join(deploy, "env"), Destination: "/etc/humanqa/env", Type: files.TypeConfigNoReplace, FileInfo: b.info(0o600)},
		b.document("docs/*.md", ""), b.document("deploy/prometheus/humanqa.rules.yml", "prometheus/humanqa.rules.yml"),
		b.document("deploy/grafana/humanqa.json", "grafana/humanqa.json"),
	))
	server.Depends, server.Recommends = []string{"passwd"}, []string{"postgresql", certificates}
	if format == "rpm" {
		// By file, because distributions name its package differently.
		server.Depends = []string{"/bin/sh", "/usr/sbin/groupadd", "/usr/sbin/useradd"}
		server.Recommends = []string{"postgresql-server", certificates}
	}
	server.Scripts = nfpm.Scripts{PostInstall: filepath.Join(deploy, "postinstall.sh"), PreRemove: filepath.Join(deploy, "preremove.sh")}
	client := b.packageOf("hqa", "The client of the Human QA Testing Service", p, docs("hqa"))
	client.Recommends = []string{certificates}
	packager, err := nfpm.Get(format)
	if err != nil {
		return err
	}
	for _, info := range []*nfpm.Info{server, client} {
		var out bytes.Buffer
		if err := packager.Package(nfpm.WithDefaults(info), &out); err != nil {
			return fmt.Errorf("%s: %w", info.Name, err)
		}
		if err := os.WriteFile(b.path("%s_%s_%s.%s", info.Name, b.version, p.arch, format), out.Bytes(), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// document is a file, or files, for the operator to read.
func (b *build) document(from, to string) *files.Content {
	return &files.Content{Source: filepath.Join(b.root, from), Destination: "/usr/share/doc/humanqa/" + to, FileInfo: b.info(0o644)}
}

func (b *build) info(mode os.FileMode) *files.ContentFileInfo {
	return &files.ContentFileInfo{Mode: mode, MTime: b.commit, Owner: "root", Group: "root"}
}

func (b *build) packageOf(program, about string, p platform, contents files.Contents) *nfpm.Info {
	return &nfpm.Info{
		Name: program, Arch: p.arch, Platform: "linux", Version: b.version, Description: about, License: "Apache-2.0", Section: "net",
		Maintainer: "The humanqa maintainers <maintainers@humanqa.example>", MTime: b.commit, Overridables: nfpm.Overridables{Contents: contents},
	}
}

// image is the server alone, for a registry or docker load: its user is no root, and it
// writes below the data directory only.
func (b *build) image(work, licences string, p platform) error {
	users := filepath.Join(work, "passwd")
	line := fmt.Sprintf("humanqa:x:%d:%d::%s:/sbin/nologin\n", userID, userID, dataDir)
	if err := os.WriteFile(users, []byte(line), 0o600); err != nil {
		return err
	}
	// A container's runtime brings its own. Where none does, humanqa doctor asks localhost all the same.
	hosts := filepath.Join(work, "hosts")
	if err := os.WriteFile(hosts, []byte("127.0.0.1 localhost\n::1 localhost\n"), 0o600); err != nil {
		return err
	}
	roots, err := rootCertificates()
	if err != nil {
		return err
	}
	layer, err := archived([]entry{
		{users, "/etc/passwd", 0o644}, {hosts, "/etc/hosts", 0o644}, {roots, "/etc/ssl/certs/ca-certificates.crt", 0o644},
		{filepath.Join(work, "humanqa"), "/usr/bin/humanqa", 0o755}, {filepath.Join(work, "humanqa-parquet"), "/usr/bin/humanqa-parquet", 0o755},
		{licences, "/usr/share/doc/humanqa/THIRD_PARTY_LICENSES", 0o644},
	}, []string{dataDir, "/tmp"}, b.commit)
	if err != nil {
		return err
	}
	made, err := tarball.LayerFromOpener(opener(layer))
	if err != nil {
		return err
	}
	image, err := mutate.Append(empty.Image, mutate.Addendum{
		Layer: made, History: v1.History{Created: v1.Time{Time: b.commit}, CreatedBy: "tools/release"},
	})
	if err != nil {
		return err
	}
	config, err := image.ConfigFile()
	if err != nil {
		return err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture, config.Created = p.os, p.arch, v1.Time{Time: b.commit}
	config.Config = v1.Config{
		User: fmt.Sprintf("%d:%d", userID, userID), Entrypoint: []string{"/usr/bin/humanqa"}, Cmd: []string{"serve"}, WorkingDir: dataDir,
		Env:          []string{"HUMANQA_DATA_DIR=" + dataDir, "HUMANQA_ADDR=:8080", "PATH=/usr/bin"},
		ExposedPorts: map[string]struct{}{"8080/tcp": {}}, Volumes: map[string]struct{}{dataDir: {}},
		Labels: map[string]string{"org.opencontainers.image.version": b.version, "org.opencontainers.image.title": "humanqa"},
	}
	if image, err = mutate.ConfigFile(image, config); err != nil {
		return err
	}
	tag, err := name.NewTag("humanqa:" + strings.NewReplacer("~", "-", "+", "-").Replace(b.version))
	if err != nil {
		return err
	}
	return tarball.WriteToFile(b.path("humanqa_%s_%s.oci.tar", b.version, p.arch), tag, image)
}

func opener(body []byte) tarball.Opener {
	return func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
}

// rootCertificates are those of this machine: webhooks and models are called by TLS.
func rootCertificates() (string, error) {
	for _, file := range []string{"/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/cert.pem"} {
		if _, err := os.Stat(file); err == nil {
			return file, nil
		}
	}
	return "", errors.New("this machine has no root certificates: install ca-certificates")
}
