"use strict";
// Buildbot's own pages load this: it adds the plans to their menu.
BuildbotPluginSupport.buildbotSetupPlugin((register) => {
  const make = React.createElement;
  const Go = () => {
    React.useEffect(() => location.replace("plugins/plans/"), []);
    return null;
  };
  const icon = make("span", { "aria-hidden": true }, "\u25a6");
  register.registerMenuGroup({ name: "plans", parentName: null, caption: "Plans", icon, order: 2, route: "/plans" });
  register.registerRoute({ route: "plans", group: "plans", element: () => make(Go) });
});
