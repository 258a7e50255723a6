"""The dashboard: pages that are made here, from what the server knows, and kept up to date by one small script.

Everything a page does works without the script, by links and forms; the script only looks again when something has
changed. Nothing comes from outside.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, Final
from urllib.parse import urlencode

import jinja2
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Mount
from starlette.staticfiles import StaticFiles

from outvote import __version__
from outvote.core.errors import InvalidInput
from outvote.core.protocols import networked
from outvote.dashboard import fleet_page, formats, forms, overview_page, task_page
from outvote.dashboard.planning import Planner, PlannerFailed
from outvote.presenters import formats as number_formats
from outvote.presenters.durations import duration
from outvote.presenters.lookup import presenter
from outvote.presenters.task_fields import BY_NAME, FIELDS
from outvote.server.admin import guard as admin_guard
from outvote.server.admin.api import CHANGES, Admin
from outvote.server.admin.http import read_body, route
from outvote.server.admin.requests import Refused
from outvote.server.changes import FLEET
from outvote.web.problems import Problem
from outvote.web.refusals import NO_TOKEN, Refusal

POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'"
)
"""Nothing from outside, and nothing that is written into a page."""
HEADERS: Final = {
    "Content-Security-Policy": POLICY,
    "Cache-Control": "no-store",
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
}


class Dashboard:
    """All pages of one server."""

    def __init__(self, admin: Admin) -> None:
        self._admin = admin
        self._server = admin.server
        self._tokens = admin.tokens
        self.planner = Planner(self._planner_answered)
        self._templates = jinja2.Environment(
            loader=jinja2.PackageLoader("outvote.dashboard"),
            autoescape=True,
            trim_blocks=True,
            lstrip_blocks=True,
            undefined=jinja2.StrictUndefined,
        )
        self._templates.globals.update(version=__version__, urlencode=urlencode)
        for name in ("count", "about", "percent", "points", "lift_percent", "plural", "listed"):
            self._templates.filters[name] = getattr(number_formats, name)
        self._templates.filters.update(moment=formats.moment, duration=duration)

    @property
    def routes(self) -> list[BaseRoute]:
        login = {
            admin_guard.LOGIN: {"GET": self.login, "POST": self.log_in},
            admin_guard.LOGOUT: {"POST": self.log_out},
        }
        return [
            *(route(path, by_method) for path, by_method in login.items() if self._tokens is not None),
            route("/", {"GET": self.overview}),
            route("/tasks/new", {"GET": self.new_task, "POST": self.create_task}),
            route("/tasks/new/plan", {"GET": self.plan}),
            route("/tasks/{task}", {"GET": self.task}),
            *(
                route(
                    f"/tasks/{{task}}/{verb}", {"GET": partial(self.confirm, verb), "POST": partial(self.change, verb)}
                )
                for verb in (*CHANGES, "delete")
            ),
            route("/tasks/{task}/expectation", {"POST": self.expect}),
            route("/fleet", {"GET": self.fleet}),
            Mount("/static", StaticFiles(packages=[("outvote.dashboard", "static")])),
        ]

    def refuse(self, request: Request, problem: Problem) -> Response | None:
        """What is wrong, as a page, for who asked for one and not for the API."""
        if "text/html" not in request.headers.get("accept", "") or request.url.path.startswith("/v1/"):
            return None
        return self._page(request, "problem.html", {"problem": problem}, status=problem.status)

    async def close(self) -> None:
        await self.planner.close()

    # ---- who looks

    async def login(self, request: Request) -> Response:
        asked = request.query_params
        return self._login(request, asked.get("next", "/"), NO_TOKEN.get(asked.get("why", "")))

    async def log_in(self, request: Request) -> Response:
        form = forms.fields(await read_body(request))
        back, token = form.get("next", "/"), form.get("token", "")
        assert self._tokens is not None  # else there is no such page
        verdict = self._tokens.check(token.encode())
        refusal = admin_guard.refusal_of(verdict)
        if refusal is not None:
            self._admin.refusals.note(refusal.reason)
            return self._login(request, back, refusal, status=refusal.status)
        response = RedirectResponse(admin_guard.local_path(back), status_code=303)
        admin_guard.remember(response, request, token, verdict)
        return response

    async def log_out(self, request: Request) -> Response:
        response = RedirectResponse(admin_guard.LOGIN, status_code=303)
        admin_guard.forget(response, request)
        return response

    def _login(self, request: Request, back: str, refusal: Refusal | None, *, status: int = 200) -> Response:
        """When a link of another site led here, browsers keep the token to themselves: then one goes on."""
        context = {
            "back": admin_guard.local_path(back),
            "trouble": None if refusal is None or refusal.reason == "missing" else refusal.detail,
            "other_site": request.headers.get("sec-fetch-site") in ("cross-site", "same-site"),
        }
        return self._page(request, "login.html", context, status=status)

    # ---- to look at

    async def overview(self, request: Request) -> Response:
        seen = overview_page.overview(self._admin, request.query_params)
        return self._page(request, "overview.html", {"page": seen}, topics="*")

    async def task(self, request: Request) -> Response:
        found = self._admin.find(request)
        seen = task_page.task_page(self._admin, found, self.planner.estimate)
        return self._page(request, "task.html", {"page": seen}, topics=found.task_id)

    async def fleet(self, request: Request) -> Response:
        seen = fleet_page.fleet(self._server, request.query_params)
        return self._page(request, "fleet.html", {"page": seen}, topics=FLEET)

    # ---- to change

    async def new_task(self, request: Request) -> Response:
        given = {key: value for key, value in request.query_params.items() if value.strip()}
        form = given if "variants" in given else {**forms.DEFAULTS, **given}
        return await self._form(request, form)

    async def create_task(self, request: Request) -> Response:
        form = forms.fields(await read_body(request))
        try:
            task = forms.task_of(form)
            expectation = forms.expectation_of(form)
            created = await self._admin.create_task(task)
        except Refused as error:
            return await self._form(request, form, error.problem)
        if any(key in form for key in forms.EXPECTED):
            await self._admin.stored(self._server.expect(created.task_id, expectation))
        return RedirectResponse(f"/tasks/{created.task_id}", status_code=303)

    async def plan(self, request: Request) -> Response:
        """The part of the form's page that the planner fills."""
        return self._page(request, "plan_part.html", await self._planned(dict(request.query_params)))

    async def confirm(self, verb: str, request: Request) -> Response:
        found = self._admin.find(request)
        return self._page(request, "confirm.html", {"verb": verb, "task": self._admin.describe_task(found)})

    async def change(self, verb: str, request: Request) -> Response:
        task_id = self._admin.find(request).task_id
        if verb == "delete":
            await self._admin.stored(self._server.delete_task(task_id))
            return RedirectResponse("/", status_code=303)
        await self._admin.change_task(verb, task_id)
        return RedirectResponse(f"/tasks/{task_id}", status_code=303)

    async def expect(self, request: Request) -> Response:
        found = self._admin.find(request)
        expectation = forms.expectation_of(forms.fields(await read_body(request)))
        await self._admin.stored(self._server.expect(found.task_id, expectation))
        return RedirectResponse(f"/tasks/{found.task_id}", status_code=303)

    # ---- how it works

    def _planner_answered(self) -> None:
        """Pages that wait for the planner look again."""
        self._server.monitor.changes.note(*self._server.state.tasks)

    async def _form(self, request: Request, form: dict[str, str], problem: Problem | None = None) -> Response:
        wrong = None if problem is None else problem.field
        offers = {protocol: presenter(protocol).offer for protocol in networked()}
        filled = {"form": form, "problem": problem, "wrong": wrong, "fields": FIELDS, "offers": offers}
        planned = await self._planned(form) if "plan" in form else {"plan": None, "trouble": None, "form": form}
        return self._page(request, "new_task.html", {**planned, **filled}, status=problem.status if problem else 200)

    async def _planned(self, form: dict[str, str]) -> dict[str, Any]:
        form = {key: value.strip() for key, value in form.items() if value.strip()}
        try:
            return {"plan": await self.planner.plan(forms.question_of(form)), "trouble": None, "form": form}
        except (InvalidInput, PlannerFailed, Refused) as error:
            if isinstance(error, InvalidInput) and error.field in BY_NAME:
                error = error.named(BY_NAME[error.field].label)
            return {"plan": None, "trouble": str(error), "form": form}

    def _page(
        self, request: Request, template: str, context: Mapping[str, Any], *, topics: str = "", status: int = 200
    ) -> Response:
        """`topics` is what must change for the page to be looked at again: everything is `*`."""
        now = self._server.clock()
        who = admin_guard.visitor(request)
        common = {
            "visitor": who if who is not None and who.role is not None else None,
            "is_stranger": who is not None and who.role is None,
            "may_change": who is None or who.role == "admin",
            "topics": topics,
            "path": request.url.path,
            "now": now,
            "ago": lambda at: formats.ago(at, now),
            "well": self._server.ready,
            "connected": self._server.log.connected,
        }
        text = self._templates.get_template(template).render(**common, **context)
        return Response(text, status_code=status, media_type="text/html", headers=HEADERS)
