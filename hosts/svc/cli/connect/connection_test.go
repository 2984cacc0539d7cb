package connect

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/pgherd/pgherd/hosts/svc/cli/app"
)

func TestConnectionStringsAreThoseOfLibpq(t *testing.T) {
	for _, c := range []struct {
		to   connection
		want string
	}{
		{
			connection{host: "db.example.com", port: 6432, name: "shop", username: "shop", roots: "/etc/ssl/certs/ca-certificates.crt"},
			"postgresql://shop@db.example.com:6432/shop?sslmode=verify-full&sslrootcert=/etc/ssl/certs/ca-certificates.crt",
		},
		{
			connection{host: "2001:db8::1", port: 5432, name: "shop.transaction", username: "pgh_1_ro", roots: "/a folder/x+y&z=%.pem"},
			"postgresql://pgh_1_ro@[2001:db8::1]:5432/shop.transaction?sslmode=verify-full&sslrootcert=/a%20folder/x%2By%26z%3D%25.pem",
		},
	} {
		if got := c.to.url(); got != c.want {
			t.Errorf("got  %s\nwant %s", got, c.want)
		}
	}
}

func TestLinesOfPasswordFilesAreEscaped(t *testing.T) {
	to := connection{host: "2001:db8::1", port: 6432, name: "shop", username: "shop", password: `a:b\c`}
	if got, want := to.passwordLine(), `2001\:db8\:\:1:6432:*:shop:a\:b\\c`+"\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestThePasswordFileHasNoName(t *testing.T) {
	folder := t.TempDir()
	t.Setenv("TMPDIR", folder)
	descriptor, err := unnamedFile("secret\n")
	if err != nil {
		t.Fatal(err)
	}
	f := os.NewFile(uintptr(descriptor), "")
	defer f.Close()
	left, err := os.ReadDir(folder)
	if err != nil || len(left) > 0 {
		t.Errorf("%v is left behind, %v", left, err)
	}
	if info, err := f.Stat(); err != nil || info.Mode() != 0o600 {
		t.Errorf("the mode is %v, %v", info.Mode(), err)
	}
	if text, err := io.ReadAll(f); err != nil || string(text) != "secret\n" {
		t.Errorf("it holds %q, %v", text, err)
	}
	if flags, err := unix.FcntlInt(f.Fd(), unix.F_GETFD, 0); err != nil || flags&unix.FD_CLOEXEC != 0 {
		t.Errorf("it is closed at exec: %x, %v", flags, err)
	}
}

func TestPsqlsEnvironment(t *testing.T) {
	from := []string{
		"HOME=/root", "PGHOST=other", "PGHOSTADDR=192.0.2.1", "PGSERVICE=s", "PGPASSWORD=p", "PGAPPNAME=a=b", "PGHOSTS=x",
		"SVC_API_KEY=k",
	}
	set := []variable{{"PGHOST", "db"}}
	want := []string{"HOME=/root", "PGPASSWORD=p", "PGAPPNAME=a=b", "PGHOSTS=x", "PGHOST=db"}
	if got := environmentWith(from, set); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	set = append(set, variable{"PGPASSFILE", "/dev/fd/3"})
	want = []string{"HOME=/root", "PGAPPNAME=a=b", "PGHOSTS=x", "PGHOST=db", "PGPASSFILE=/dev/fd/3"}
	if got := environmentWith(from, set); !slices.Equal(got, want) {
		t.Errorf("with a password file: got %q, want %q", got, want)
	}
}

func TestWhichAuthoritiesAreTrusted(t *testing.T) {
	folder := t.TempDir()
	file := func(name string) string {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	flag, variable, profile := file("flag"), file("variable"), file("profile")
	for _, c := range []struct{ flag, variable, profile, want string }{
		{flag, variable, profile, flag},
		{"", variable, profile, variable},
		{"", "", profile, profile},
		{"system", variable, profile, "system"},
	} {
		t.Setenv("PGSSLROOTCERT", c.variable)
		a := &app.App{}
		a.Target.CAFile = c.profile
		if got, err := rootCertificates(a, c.flag); err != nil || got != c.want {
			t.Errorf("%+v: got %s, %v", c, got, err)
		}
	}
	t.Setenv("PGSSLROOTCERT", "")
	if got, err := rootCertificates(&app.App{}, ""); err != nil || got != "system" && !slices.Contains(bundles, got) {
		t.Errorf("got %s, %v", got, err)
	}
	if got, err := rootCertificates(&app.App{}, filepath.Join(folder, "nosuch")); err == nil {
		t.Errorf("a file that does not exist: got %s", got)
	}
	t.Chdir(folder)
	if got, err := rootCertificates(&app.App{}, "flag"); err != nil || got != flag {
		t.Errorf("a name: got %s, %v", got, err)
	}
}
