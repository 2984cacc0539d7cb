//go:build packages

package packages

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pgherd/pgherd/acceptance/check"
)

// blob is how OCI's documents name each other.
type blob struct {
	Digest string
	Size   int
}

// image is an archive of OCI's layout: its files by name.
type image map[string][]byte

func readImage(t *testing.T, release string) image {
	t.Helper()
	found := check.Must(filepath.Glob(filepath.Join(release, "*.oci.tar")))(t)
	if len(found) != 1 {
		t.Fatalf("the images are %q", found)
	}
	files := image{}
	archive := check.Must(os.Open(found[0]))(t)
	defer archive.Close()
	each(t, archive, func(h *tar.Header, content []byte) { files[h.Name] = content })
	return files
}

func each(t *testing.T, archive io.Reader, do func(*tar.Header, []byte)) {
	t.Helper()
	for r := tar.NewReader(archive); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		check.NoError(t, err)
		do(h, check.Must(io.ReadAll(r))(t))
	}
}

// blob is what a document names, which has that size and checksum.
func (i image) blob(t *testing.T, b blob) []byte {
	t.Helper()
	content := i["blobs/"+strings.Replace(b.Digest, ":", "/", 1)]
	if sum := sha256.Sum256(content); len(content) != b.Size || "sha256:"+hex.EncodeToString(sum[:]) != b.Digest {
		t.Fatalf("%+v has %d bytes", b, len(content))
	}
	return content
}

func (i image) document(t *testing.T, text []byte, into any) {
	t.Helper()
	if err := json.Unmarshal(text, into); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
}

// runs unpacks an image, as what runs containers does, and runs its program as its user, in nothing but its files.
func (i image) runs(t *testing.T) {
	t.Helper()
	var index struct{ Manifests []blob }
	i.document(t, i["index.json"], &index)
	var manifest struct {
		Config blob
		Layers []blob
	}
	i.document(t, i.blob(t, index.Manifests[0]), &manifest)
	var config struct {
		Config struct {
			User       string
			Entrypoint []string
		}
		Rootfs struct {
			DiffIDs []string `json:"diff_ids"`
		}
	}
	i.document(t, i.blob(t, manifest.Config), &config)
	layer := check.Must(io.ReadAll(check.Must(gzip.NewReader(bytes.NewReader(i.blob(t, manifest.Layers[0]))))(t)))(t)
	if sum := sha256.Sum256(layer); config.Rootfs.DiffIDs[0] != "sha256:"+hex.EncodeToString(sum[:]) {
		t.Errorf("the layer is not %s", config.Rootfs.DiffIDs[0])
	}
	root := t.TempDir()
	each(t, bytes.NewReader(layer), func(h *tar.Header, content []byte) {
		at := filepath.Join(root, filepath.FromSlash(h.Name))
		if h.Typeflag == tar.TypeDir {
			check.NoError(t, os.MkdirAll(at, 0o755))
			return
		}
		check.NoError(t, os.WriteFile(at, content, h.FileInfo().Mode().Perm()))
	})
	trusted := check.Must(os.ReadFile(filepath.Join(root, "etc/ssl/certs/ca-certificates.crt")))(t)
	if n := bytes.Count(trusted, []byte("BEGIN")); n < 100 {
		t.Errorf("it trusts %d authorities", n)
	}
	check.NoError(t, os.Chmod(filepath.Dir(root), 0o755))
	chroot := check.Must(exec.LookPath("chroot"))(t) // what runs has no PATH
	args := append([]string{chroot, "--userspec=" + config.Config.User, root}, config.Config.Entrypoint...)
	for want, flags := range map[string][]string{now + " (" + commit + ")": {"--version"}, "PGHERD_METADATA_URL": {"api"}} {
		c := alone(t, append(args, flags...)...)
		c.Env = []string{}
		if out, _ := c.CombinedOutput(); !strings.Contains(string(out), want) {
			t.Errorf("%s says %s", flags, out)
		}
	}
}
