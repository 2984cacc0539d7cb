package web

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"html/template"
	"net/http"
	"strings"
	"sync"
)

//go:embed assets templates
var files embed.FS

// asset is a file that all pages share. Its name changes with what it holds, so that browsers keep it.
type asset struct {
	name, kind string
	plain      []byte
	packed     []byte
}

// parts are what all pages share. They are made for the first server: most processes of the program show no page, and each
// segment of WAL that is handed over is one of them.
var parts = sync.OnceValue(func() (p struct {
	style, script, icon *asset
	templates           *template.Template
}) {
	p.style = newAsset("style.css", "text/css; charset=utf-8")
	p.script = newAsset("script.js", "text/javascript; charset=utf-8")
	p.icon = newAsset("icon.svg", "image/svg+xml")
	p.templates = template.Must(template.New("").Funcs(functions).ParseFS(files, "templates/*.html"))
	return p
})

func newAsset(file, kind string) *asset {
	plain, err := files.ReadFile("assets/" + file)
	if err != nil {
		panic(err) // it is a part of the program
	}
	var packed bytes.Buffer
	z, _ := gzip.NewWriterLevel(&packed, gzip.BestCompression) // the level exists
	_, _ = z.Write(plain)                                      // memory takes everything
	_ = z.Close()
	sum := sha256.Sum256(plain)
	base, suffix, _ := strings.Cut(file, ".")
	return &asset{base + "-" + hex.EncodeToString(sum[:6]) + "." + suffix, kind, plain, packed.Bytes()}
}

func (a *asset) serve(*Request) (Answer, error) { return a, nil }

// write implements Answer.
func (a *asset) write(r *Request) error {
	r.out.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	if r.takesGzip() {
		return r.send(a.kind, http.StatusOK, a.packed)
	}
	return r.send(a.kind, http.StatusOK, a.plain)
}
