package main

import (
	"context"
	_ "embed"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/ephemeral"
	fw "github.com/hashicorp/terraform-plugin-framework/provider"
	"github.com/hashicorp/terraform-plugin-framework/resource"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/hosts/terraform/provider"
)

// head is the part of docs/use/terraform.md that is written by hand.
//
//go:embed head.md
var head string

// TestGoldenPage makes docs/use/terraform.md from what the provider says of itself.
func TestGoldenPage(t *testing.T) {
	want, path := page(t.Context()), filepath.Join("..", "..", "docs", "use", "terraform.md")
	if os.Getenv("PGHERD_UPDATE_GOLDEN") != "" {
		check.NoError(t, os.WriteFile(path, []byte(want), 0o644))
	}
	if have, err := os.ReadFile(path); err != nil || string(have) != want {
		t.Errorf("docs/use/terraform.md does not follow from the provider any more; run make generate (%v)", err)
	}
}

// attribute is what the schemas of all kinds have.
type attribute interface {
	IsRequired() bool
	IsOptional() bool
	IsSensitive() bool
	GetMarkdownDescription() string
}

func page(ctx context.Context) string {
	var b strings.Builder
	b.WriteString(head)
	p := provider.New()
	var of fw.SchemaResponse
	p.Schema(ctx, fw.SchemaRequest{}, &of)
	section(&b, "## The provider", of.Schema.MarkdownDescription, of.Schema.Attributes)
	b.WriteString("\n## Resources\n")
	for _, made := range p.Resources(ctx) {
		var name resource.MetadataResponse
		var s resource.SchemaResponse
		made().Metadata(ctx, resource.MetadataRequest{ProviderTypeName: "pgherd"}, &name)
		made().Schema(ctx, resource.SchemaRequest{}, &s)
		section(&b, "### "+name.TypeName, s.Schema.MarkdownDescription, s.Schema.Attributes)
	}
	b.WriteString("\n## Data sources\n")
	for _, made := range p.DataSources(ctx) {
		var name datasource.MetadataResponse
		var s datasource.SchemaResponse
		made().Metadata(ctx, datasource.MetadataRequest{ProviderTypeName: "pgherd"}, &name)
		made().Schema(ctx, datasource.SchemaRequest{}, &s)
		section(&b, "### "+name.TypeName+", read", s.Schema.MarkdownDescription, s.Schema.Attributes)
	}
	b.WriteString("\n## Passwords\n")
	for _, made := range p.(fw.ProviderWithEphemeralResources).EphemeralResources(ctx) { //nolint:forcetypeassert // it has some
		var name ephemeral.MetadataResponse
		var s ephemeral.SchemaResponse
		made().Metadata(ctx, ephemeral.MetadataRequest{ProviderTypeName: "pgherd"}, &name)
		made().Schema(ctx, ephemeral.SchemaRequest{}, &s)
		section(&b, "### "+name.TypeName, s.Schema.MarkdownDescription, s.Schema.Attributes)
	}
	return b.String()
}

func section[A attribute](b *strings.Builder, title, text string, attributes map[string]A) {
	fmt.Fprintf(b, "\n%s\n\n%s\n\n| attribute | | meaning |\n| - | - | - |\n", title, text)
	for _, name := range slices.Sorted(maps.Keys(attributes)) {
		a := attributes[name]
		how := "told"
		switch {
		case a.IsRequired():
			how = "required"
		case a.IsOptional():
			how = "optional"
		}
		if a.IsSensitive() {
			how += ", secret"
		}
		fmt.Fprintf(b, "| `%s` | %s | %s |\n", name, how, strings.ReplaceAll(a.GetMarkdownDescription(), "|", `\|`))
	}
}
