package browser

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/dom"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// script defines what is asked of a page. It runs in a world of its own: it sees the document that the page's scripts see, but
// not them, and they do not see it. So the page's policy stays in force, and holds for the page alone.
var script = pageScript + auditScript

//go:embed page.js
var pageScript string

//go:embed audit.js
var auditScript string

// try sends a command to the page.
func try[P, R any](p *Page, command cdp.Command[P, R], params P) (R, error) {
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	return chromedp.Call(ctx, command, params)
}

// call sends a command to the page, which must not fail.
func call[P, R any](p *Page, command cdp.Command[P, R], params P) R {
	p.t.Helper()
	result, err := try(p, command, params)
	if err != nil {
		p.fail("%s: %v", command.Method, err)
	}
	return result
}

// ask evaluates an expression in the page and reads its value into answer. The errors of all these say that the document has just
// gone, if not that the expression is wrong: ask again.
func (p *Page) ask(expression string, answer any) error {
	object, err := p.evaluate(expression, true)
	if err != nil {
		return err
	}
	return json.Unmarshal(object.Value, answer)
}

// asked is ask, again until there is an answer.
func (p *Page) asked(expression string, answer any) {
	p.t.Helper()
	var err error
	p.until(func() string { return err.Error() }, func() bool {
		p.rest()
		err = p.ask(expression, answer)
		return err == nil
	})
}

// object evaluates an expression to an object of the page: to "" for null.
func (p *Page) object(expression string) (runtime.RemoteObjectID, error) {
	object, err := p.evaluate(expression, false)
	if err != nil {
		return "", err
	}
	return object.ObjectID, nil
}

func (p *Page) evaluate(expression string, byValue bool) (*runtime.RemoteObject, error) {
	world, err := p.world()
	if err != nil {
		return nil, err
	}
	result, err := try(p, runtime.Evaluate, runtime.EvaluateParams{
		Expression: script + expression, ContextID: world, ReturnByValue: &byValue, AwaitPromise: new(true), Silent: new(true),
	})
	if err != nil {
		return nil, err
	}
	if result.ExceptionDetails != nil {
		return nil, errors.New(thrown(result.ExceptionDetails))
	}
	return result.Result, nil
}

// on evaluates an expression with an element as this.
func (p *Page) on(node cdp.BackendNodeID, expression string, answer any) error {
	world, err := p.world()
	if err != nil {
		return err
	}
	element, err := try(p, dom.ResolveNode, dom.ResolveNodeParams{BackendNodeID: node, ExecutionContextID: world})
	if err != nil {
		return err
	}
	result, err := try(p, runtime.CallFunctionOn, runtime.CallFunctionOnParams{
		FunctionDeclaration: "function() { " + script + "return " + expression + " }", ObjectID: element.Object.ObjectID,
		ReturnByValue: new(true), AwaitPromise: new(true), Silent: new(true),
	})
	if err != nil {
		return err
	}
	if result.ExceptionDetails != nil {
		return errors.New(thrown(result.ExceptionDetails))
	}
	return json.Unmarshal(result.Result.Value, answer)
}

// world is that of the script, in the document that is there now.
func (p *Page) world() (runtime.ExecutionContextID, error) {
	made, err := try(p, page.CreateIsolatedWorld, page.CreateIsolatedWorldParams{
		FrameID: cdp.FrameID(p.mainFrame()), WorldName: "pgherd",
	})
	return made.ExecutionContextID, err
}

// quoted is a text as a script writes it.
func quoted(text string) string {
	b, _ := json.Marshal(text) // A text cannot fail.
	return string(b)
}
