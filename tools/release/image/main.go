// Command image makes an image for containers, with neither a daemon nor a base image: an archive of OCI's layout. It has the
// program pgherd, the certificate authorities that Mozilla trusts, and a user.
// The same files, version and second make the same bytes.
//
//	image -program bin/pgherd -license LICENSE -version v1.0.0 -commit 0123... -arch amd64 -seconds 1767225600 -to pgherd.oci.tar
package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// made says what the image is made of.
type made struct {
	program, license, version, commit, arch string
	seconds                                 int64
}

func main() {
	var m made
	flag.StringVar(&m.program, "program", "", "the program, static, for the processor of -arch")
	flag.StringVar(&m.license, "license", "", "the license")
	flag.StringVar(&m.version, "version", "", "its version, such as v1.0.0")
	flag.StringVar(&m.commit, "commit", "", "the commit that it was built from")
	flag.StringVar(&m.arch, "arch", "", "amd64 or arm64")
	flag.Int64Var(&m.seconds, "seconds", 0, "the time of all files, in seconds of Unix time")
	to := flag.String("to", "", "the archive")
	flag.Parse()
	if err := m.write(*to); err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
}

func (m made) write(to string) error {
	layer, err := m.layer()
	if err != nil {
		return err
	}
	var packed bytes.Buffer
	zip, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err != nil {
		return err
	}
	if _, err = zip.Write(layer); err == nil {
		err = zip.Close()
	}
	if err != nil {
		return err
	}
	image, err := m.image(layer, packed.Bytes())
	if err != nil {
		return err
	}
	return os.WriteFile(to, image, 0o644)
}

// The user that the program runs as, unless somebody else is named.
const (
	uid      = 65532
	accounts = "root:x:0:0:root:/:/sbin/nologin\npgherd:x:65532:65532:pgherd:/:/sbin/nologin\n"
	groups   = "root:x:0:\npgherd:x:65532:\n"
)

// layer has the files, as an archive.
func (m made) layer() ([]byte, error) {
	program, err := os.ReadFile(m.program)
	if err != nil {
		return nil, err
	}
	license, err := os.ReadFile(m.license)
	if err != nil {
		return nil, err
	}
	a := m.archive()
	for _, folder := range []string{
		"etc", "etc/ssl", "etc/ssl/certs", "usr", "usr/bin", "usr/share", "usr/share/doc", "usr/share/doc/pgherd",
	} {
		a.folder(folder, 0o755)
	}
	a.folder("tmp", 0o1777)
	a.file("etc/passwd", []byte(accounts), 0o644)
	a.file("etc/group", []byte(groups), 0o644)
	a.file("etc/ssl/certs/ca-certificates.crt", authorities(), 0o644)
	a.file("usr/share/doc/pgherd/copyright", license, 0o644)
	a.file("usr/bin/pgherd", program, 0o755)
	return a.end()
}

// authorities are those that Mozilla trusts for any name: a bundle of PEM cannot say what else some are limited to.
func authorities() []byte {
	var text bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			_ = pem.Encode(&text, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}) // a buffer takes everything
		}
	}
	return text.Bytes()
}

type object map[string]any

// image is the archive of OCI's layout: the layer, how a container is started, and who names them.
func (m made) image(layer, packed []byte) ([]byte, error) {
	created := time.Unix(m.seconds, 0).UTC().Format(time.RFC3339)
	labels := map[string]string{
		"org.opencontainers.image.title": "pgherd", "org.opencontainers.image.version": m.version,
		"org.opencontainers.image.revision": m.commit, "org.opencontainers.image.created": created,
		"org.opencontainers.image.licenses": "Apache-2.0", "org.opencontainers.image.source": "https://github.com/pgherd/pgherd",
	}
	config := object{
		"created": created, "architecture": m.arch, "os": "linux",
		"config": object{
			"User": fmt.Sprintf("%d:%[1]d", uid), "Entrypoint": []string{"/usr/bin/pgherd"},
			"Env": []string{"PATH=/usr/bin"}, "Labels": labels,
		},
		"rootfs":  object{"type": "layers", "diff_ids": []string{digest(layer)}},
		"history": []object{{"created": created, "created_by": "pgherd tools/release/image"}},
	}
	blobs := map[string][]byte{}
	add := func(kind string, content []byte) object {
		blobs[digest(content)] = content
		return object{"mediaType": kind, "digest": digest(content), "size": len(content)}
	}
	const kind = "application/vnd.oci.image."
	configText, err := json.Marshal(config)
	if err != nil {
		return nil, err
	}
	manifest, err := json.Marshal(object{
		"schemaVersion": 2, "mediaType": kind + "manifest.v1+json", "config": add(kind+"config.v1+json", configText),
		"layers": []object{add(kind+"layer.v1.tar+gzip", packed)}, "annotations": labels,
	})
	if err != nil {
		return nil, err
	}
	named := add(kind+"manifest.v1+json", manifest)
	named["platform"] = object{"architecture": m.arch, "os": "linux"}
	tag := strings.TrimPrefix(m.version, "v")
	named["annotations"] = map[string]string{
		"org.opencontainers.image.ref.name": tag, "io.containerd.image.name": "pgherd:" + tag,
	}
	index, err := json.Marshal(object{"schemaVersion": 2, "mediaType": kind + "index.v1+json", "manifests": []object{named}})
	if err != nil {
		return nil, err
	}
	a := m.archive()
	a.file("oci-layout", []byte(`{"imageLayoutVersion":"1.0.0"}`), 0o644)
	a.file("index.json", index, 0o644)
	a.folder("blobs", 0o755)
	a.folder("blobs/sha256", 0o755)
	for _, content := range [][]byte{configText, manifest, packed} {
		a.file("blobs/"+strings.Replace(digest(content), ":", "/", 1), content, 0o644)
	}
	return a.end()
}

func digest(content []byte) string {
	sum := sha256.Sum256(content)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// archive is a tar whose entries are root's and all of one time.
type archive struct {
	at   time.Time
	text bytes.Buffer
	to   *tar.Writer
	err  error
}

func (m made) archive() *archive {
	a := &archive{at: time.Unix(m.seconds, 0)}
	a.to = tar.NewWriter(&a.text)
	return a
}

func (a *archive) put(h tar.Header, content []byte) {
	if a.err != nil {
		return
	}
	h.ModTime, h.Size, h.Format = a.at, int64(len(content)), tar.FormatUSTAR
	if a.err = a.to.WriteHeader(&h); a.err == nil {
		_, a.err = io.Copy(a.to, bytes.NewReader(content))
	}
}

func (a *archive) folder(name string, mode int64) {
	a.put(tar.Header{Typeflag: tar.TypeDir, Name: name + "/", Mode: mode}, nil)
}

func (a *archive) file(name string, content []byte, mode int64) {
	a.put(tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: mode}, content)
}

func (a *archive) end() ([]byte, error) {
	if a.err == nil {
		a.err = a.to.Close()
	}
	return a.text.Bytes(), a.err
}
