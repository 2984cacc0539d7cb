package provider

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/idempotency"
)

// The attributes that several resources have.

func computedID(of string) schema.StringAttribute {
	return schema.StringAttribute{
		Computed: true, MarkdownDescription: "ID of the " + of + ".",
		PlanModifiers: []planmodifier.String{stringplanmodifier.UseStateForUnknown()},
	}
}

// fixed is an attribute whose change makes a new resource.
func fixed(required bool, text string, checks ...validator.String) schema.StringAttribute {
	return schema.StringAttribute{
		Required: required, Optional: !required, MarkdownDescription: text + " A change makes a new one.", Validators: checks,
		PlanModifiers: []planmodifier.String{stringplanmodifier.RequiresReplace()},
	}
}

// told is what the service says, and a change of the resource leaves.
func told(text string) schema.StringAttribute {
	return schema.StringAttribute{
		Computed: true, MarkdownDescription: text,
		PlanModifiers: []planmodifier.String{stringplanmodifier.UseStateForUnknown()},
	}
}

// secret is told once, and only the state has it.
func secret(o once, text string) schema.StringAttribute {
	return schema.StringAttribute{
		Computed: true, Sensitive: true, MarkdownDescription: text, PlanModifiers: []planmodifier.String{o},
	}
}

func inState(what, instead string) schema.BoolAttribute {
	return schema.BoolAttribute{
		Optional: true, MarkdownDescription: "False: the state has no " + what + ". " + instead,
	}
}

// given is a text that is there; else null.
func given(text string) types.String {
	if text == "" {
		return types.StringNull()
	}
	return types.StringValue(text)
}

// unless is a secret, or null where its attribute says that the state has none.
func unless(kept types.Bool, secret string) types.String {
	if kept.Equal(types.BoolValue(false)) {
		return types.StringNull()
	}
	return given(secret)
}

// key is the idempotency key that a thing is made with.
func key(text string) schema.StringAttribute {
	return schema.StringAttribute{
		Optional: true, Computed: true,
		MarkdownDescription: "What it is asked for with: asked for with the same key again, it is not made twice, and " + text +
			". A random one, another each time, if not set. Another thing needs another key; a change of the key alone changes nothing.",
		Validators:    []validator.String{like(idempotency.Parse)},
		PlanModifiers: []planmodifier.String{stringplanmodifier.UseStateForUnknown()},
	}
}

func ofDatabase() schema.StringAttribute {
	return fixed(true, "ID of the database.", like(id.Parse[id.DatabaseID]))
}

// model is what a resource has in its attributes.
type model interface {
	// given is how long a change of it may take; 0 where nothing is said.
	given() time.Duration
}

// timed is the part of a model that every resource has.
type timed struct {
	Timeout types.String `tfsdk:"timeout"`
}

func (t timed) given() time.Duration {
	limit, _ := time.ParseDuration(t.Timeout.ValueString()) // a text that is none is refused before
	return limit
}

func timeout(otherwise time.Duration) schema.StringAttribute {
	return schema.StringAttribute{
		Optional: true, MarkdownDescription: fmt.Sprintf("How long a change of it may take, what it waits for included, as in `20m`; "+
			"%.0f minutes without it.", otherwise.Minutes()),
		Validators: []validator.String{accepted(func(text string) error {
			if d, err := time.ParseDuration(text); err != nil || d <= 0 {
				return errors.New("must be a duration, such as 90s, 20m or 1h")
			}
			return nil
		})},
	}
}

// accepted is a check of a text as the service makes it, before anything is planned.
type accepted func(text string) error

// like is one that has a text written as the service keeps it: it would be another one in the next plan.
func like[T ~string](parse func(text string) (T, error)) validator.String {
	return accepted(func(text string) error {
		kept, err := parse(text)
		if err == nil && string(kept) != text {
			err = fmt.Errorf("the service writes it %q: write it so", string(kept))
		}
		return err
	})
}

// Description implements validator.Describer.
func (accepted) Description(context.Context) string { return "what the service takes" }

// MarkdownDescription implements validator.Describer.
func (a accepted) MarkdownDescription(ctx context.Context) string { return a.Description(ctx) }

// ValidateString implements validator.String.
func (a accepted) ValidateString(_ context.Context, req validator.StringRequest, resp *validator.StringResponse) {
	if req.ConfigValue.IsNull() || req.ConfigValue.IsUnknown() {
		return
	}
	err := a(req.ConfigValue.ValueString())
	if err == nil {
		return
	}
	text := err.Error()
	var refused *fault.Error
	if errors.As(err, &refused) && len(refused.Details) > 0 {
		text = refused.Details[0].Issue
	}
	resp.Diagnostics.AddAttributeError(req.Path, "The service does not take that", text)
}
